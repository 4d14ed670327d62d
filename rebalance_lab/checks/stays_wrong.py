"""O5g, stays wrong: a member gave up, and what it wanted has had no owner since (claim Z9).

Looked at is the last rest before the phase `closing`. A member stands there that gave up: its last rebalance ended as
failed. A partition that it wanted in that rebalance (DECIDED, or a conflict of an attempt) has no owner at any rest
since then, by the registry. A member that rebalances again, by itself or called by a change, has not given up; and
a group whose partitions have owners at the last rest did not stay wrong.

Witness: the REBALANCE_BEGAN of the rebalance and its end, what left the partition without owner, and the last rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rebalance_lab.checks.deals import partitions_in
from rebalance_lab.checks.faults import clock_drifted, not_violated, violated
from rebalance_lab.checks.groups import Place, unrested
from rebalance_lab.checks.lives import Rebalance, lives
from rebalance_lab.checks.model import Check, Finding
from rebalance_lab.checks.omission import Breach, seen_at_rests
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of


@dataclass(frozen=True, slots=True)
class _Failed:
    """A rebalance, ended as failed with `ended`, that no other of its member followed until the last rest."""

    member: str
    began: Event
    ended: Event
    wanted: frozenset[Place]


def judge(history: History) -> Finding:
    """Measures: `gave_up`, members that had given up at the last rest; `count`, partitions that one of them
    wanted and that had no owner since; `rests`, of these since then, of the partition with the most."""
    seen = seen_at_rests(history)
    failed = list(_failed(history, seen[-1].rest)) if seen else []
    found: dict[Place, tuple[_Failed, Breach, int]] = {}
    for one in [] if clock_drifted(history) else failed:
        since = [state for state in seen if state.rest.at_us >= one.ended.at_us]
        unowned = [{breach.place: breach for breach in state.breaches if not breach.foreign} for state in since]
        for place, breach in unowned[-1].items():
            if place in one.wanted and all(place in each for each in unowned):
                found.setdefault(place, (one, breach, len(since)))
    numbers = {"count": len(found), "gave_up": len(failed), "rests": max((row[2] for row in found.values()), default=0)}
    if found:
        return _violated(found, numbers)
    nobody = None if events_of(history, Kind.REBALANCE_BEGAN) else "no member ever rebalanced"
    why = "at the last rest no partition lacked an owner that a member had wanted and given up"
    return not_violated(history, why, numbers, vacuous=nobody or unrested(history), across_layers=True)


def _violated(found: dict[Place, tuple[_Failed, Breach, int]], numbers: dict[str, int]) -> Finding:
    (_, topic, partition), (failed, breach, _) = next(iter(found.items()))
    more = f" (and {len(found) - 1} more partitions)" if len(found) > 1 else ""
    why = (
        f"{failed.member} gave up after {failed.ended.of('attempts')} attempts, "
        f"and {topic}/{partition}{more}, which it wanted, had no owner at any rest since"
    )
    return violated(why, (failed.began.id, failed.ended.id, breach.left.id, breach.rest.id), numbers)


def _failed(history: History, rest: Event) -> Iterator[_Failed]:
    """The members that are there at a rest and whose last rebalance by then had failed."""
    for life in lives(history):
        until = [each for each in life.rebalances if each.began.at_us <= rest.at_us]
        last = until[-1] if until else None
        left = life.left_us is not None and life.left_us < rest.at_us
        if last is None or left or last.outcome != "failed" or last.ended is None or last.ended.at_us > rest.at_us:
            continue
        wanted = frozenset((life.group, *each) for each in _wanted(last))
        yield _Failed(life.member, last.began, last.ended, wanted)


def _wanted(rebalance: Rebalance) -> Iterator[tuple[str, int]]:
    for attempt in rebalance.attempts:
        if attempt.decided is not None:
            yield from partitions_in(attempt.decided.of("wants"))
        if attempt.failed is not None:
            yield from partitions_in(attempt.failed.of("conflicts"))


CHECK = Check(
    name="stays_wrong",
    compares=(Layer.OP, Layer.REGISTRY),
    meaning="A member gave up, and what it wanted had no owner from then until the last rest.",
    plants=("leave-orphan",),
    judge=judge,
)
