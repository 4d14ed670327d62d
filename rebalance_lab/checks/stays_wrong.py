"""O5g, stays wrong: a member gave up on partitions that others owned, and they have had no owner since (claim Z9).

The check looks at the last rest before the phase `closing`. A member has given up there: its last rebalance ended as
failed, and each of its attempts failed on a conflict that the registry witnesses (`conflicts`). A partition that it
wanted in that rebalance (DECIDED, or a conflict of an attempt) has no owner at any rest since then, by the registry. A
member that rebalances again, by itself or because of a change, has not given up; and a group whose partitions have
owners at the last rest did not stay wrong.

A member that failed for a reason of its own, such as an error, shows nothing about Z9. If that left a partition without
owner, and some attempts failed on conflicts too, the check is unknown. It does not apply if no attempt after the first
rest failed on a conflict, because no member depended on another's rebalance then; but it always applies to a control,
in which there should be none.

Witness: the REBALANCE_BEGAN of the rebalance and its end, what left the partition without owner, and the last rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rebalance_lab.checks.conflicts import met
from rebalance_lab.checks.faults import clock_drifted
from rebalance_lab.checks.members import member_lives
from rebalance_lab.checks.model import ZK, Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.omission import Breach, seen_at_rests
from rebalance_lab.checks.phases import judged_period
from rebalance_lab.checks.registry_state import Place, unrested
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.rebalances import RebalanceOutcome
from rebalance_lab.history.views import events_of


@dataclass(frozen=True, slots=True)
class _Failed:
    """A rebalance that ended as failed with `ended`, the last of its member until the last rest. `met`: how many of its
    `tried` attempts failed on a conflict that the registry witnesses."""

    member: str
    began: Event
    ended: Event
    wanted: frozenset[Place]
    tried: int
    met: int

    @property
    def by_conflicts(self) -> bool:
        return 0 < self.met == self.tried


def judge(history: History) -> Finding:
    """Measures: `gave_up`, members whose last rebalance by the last rest had failed; `count`, partitions on which one
    of them gave up because of conflicts and that had no owner since; `rests`, the most rests that one of these
    partitions had no owner."""
    seen = seen_at_rests(history)
    failed = list(_failed(history, seen[-1].rest)) if seen else []
    found: dict[Place, tuple[_Failed, Breach, int]] = {}
    otherwise: dict[Place, tuple[_Failed, Breach, int]] = {}
    for one in [] if clock_drifted(history) else failed:
        since = [state for state in seen if state.rest.at_us >= one.ended.at_us]
        unowned = [{breach.place: breach for breach in state.breaches if not breach.foreign} for state in since]
        for place, breach in unowned[-1].items():
            if place in one.wanted and all(place in each for each in unowned):
                (found if one.by_conflicts else otherwise).setdefault(place, (one, breach, len(since)))
    numbers = {"count": len(found), "gave_up": len(failed), "rests": max((row[2] for row in found.values()), default=0)}
    if found:
        return _violated(found, numbers)
    nobody = None if events_of(history, Kind.REBALANCE_BEGAN) else "no member ever rebalanced"
    partly = [
        f"{one.member} gave up after {one.tried} attempts, of which, by the registry, only {one.met} failed on others' "
        "claims: it is not known whether these made it give up"
        for one, _, _ in otherwise.values()
        if one.met
    ]
    why = "at the last rest every partition on which a member had given up had an owner"
    return not_violated(
        history, why, numbers, vacuous=nobody or unrested(history) or next(iter(partly), None), across_layers=True
    )


def _violated(found: dict[Place, tuple[_Failed, Breach, int]], numbers: dict[str, int]) -> Finding:
    (_, topic, partition), (failed, breach, _) = next(iter(found.items()))
    more = f" (and {len(found) - 1} more partitions)" if len(found) > 1 else ""
    why = (
        f"{failed.member} gave up after {failed.ended.of('attempts')} attempts, "
        f"and {topic}/{partition}{more}, which it wanted, had no owner at any rest since"
    )
    return violated(why, (failed.began.id, failed.ended.id, breach.left.id, breach.rest.id), numbers)


def _failed(history: History, rest: Event) -> Iterator[_Failed]:
    """The members that are alive at a rest and whose last rebalance by then had failed."""
    for life in member_lives(history):
        until = [each for each in life.rebalances if each.began.at_us <= rest.at_us]
        last = until[-1] if until else None
        left = life.left_us is not None and life.left_us < rest.at_us
        if last is None or left or last.ended is None or last.ended.at_us > rest.at_us:
            continue
        if last.outcome != RebalanceOutcome.FAILED:
            continue
        wanted = frozenset((life.group, *each) for one in last.attempts for each in (*one.wants, *one.lost))
        tried, met_there = len(last.attempts), sum(met(history, life, each) for each in last.attempts)
        yield _Failed(life.member, last.began, last.ended, wanted, tried, met_there)


def _met_in_changes(history: History) -> bool:
    """Whether an attempt after the first rest failed on a conflict; also true of a control, and if there is no rest."""
    period = judged_period(history)
    return (
        history.trial.control
        or period is None
        or any(
            period.holds(attempt.began) and met(history, life, attempt)
            for life in member_lives(history)
            for attempt in life.attempts
        )
    )


CHECK = Check(
    name="stays_wrong",
    compares=(Layer.OP, Layer.REGISTRY),
    meaning="A member gave up on partitions that others owned, and they had no owner from then to the last rest.",
    together=(
        "A member that has used up its attempts does nothing more, but stays registered. The others count it and leave "
        "its share to it, and nothing reports that this share has no owner."
    ),
    plants=(Planted("leave-orphan", "uncontrolled", settings={"slow_stop_ms": "1000"}),),
    judge=judge,
    applies_to=(ZK,),
    looks_at=_met_in_changes,
)
