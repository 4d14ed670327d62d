"""O6, non-convergence: the group does not reach agreement, although nothing disturbs it any more.

There are three kinds, each until the phase `closing`:

- *never at rest*: REST_MISSED, when no fault was under way and the last external change (membership, brokers, topics, a
  session's end, a fault's end) was longer ago than expiry, two rebalances (one under way, and the one that may be
  pending) and the quiet time of a rest. A member that deletes its id, or creates it again, in the middle of its session
  causes this change itself. In other checks a missed rest makes a trial unknown; here it is evidence, unless the runner
  waited for something else and no member was busy (`at_rest`).
- *retries exhausted*: a rebalance that ended as failed after the first rest, whatever came later, and whether its
  application learned of it or not (defects F1, F9). Before the first rest, or without one: only if no other rebalance
  of the member followed by then.
- *flapping*: a member that ran more than ROUNDS_PER_CHANGE rebalances for each change between two rests. One change
  costs each member one rebalance. A member's expiry and return are two changes; they cost it three rebalances, or four
  if the old session's watch fired before its end was known.

Witness: of a missed rest the last change and the REST_MISSED; of exhausted retries the REBALANCE_BEGAN and its end; of
flapping the two rests and the last REBALANCE_BEGAN.

The check does not look at why members fail: `hold_and_wait` finds those that wait for each other.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rebalance_lab.checks.bounds import bounds, lacking
from rebalance_lab.checks.faults import TOLERANCE_US, under_way
from rebalance_lab.checks.members import Rebalance, member_lives
from rebalance_lab.checks.model import ZK, Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.phases import closing_us, rests_of
from rebalance_lab.checks.registry_state import membership_changes
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.events import Event, EventId, Kind, Layer, order
from rebalance_lab.history.files import History
from rebalance_lab.history.rebalances import AttemptFailure, RebalanceOutcome
from rebalance_lab.history.views import events_of, once

#: One suffices, or two for a member's own expiry and return, which are two changes; the rest is a margin.
ROUNDS_PER_CHANGE = 3


@dataclass(frozen=True, slots=True)
class _Trouble:
    kind: str
    why: str
    witness: tuple[EventId | None, ...]


def judge(history: History) -> Finding:
    """Measures: `count`, of these `never_at_rest`, `retries_exhausted`, `flapping`; `rounds_most`, the most rebalances
    of one member between two rests; `conflicts`, attempts that failed on one."""
    found = [*_exhausted(history), *_flapping(history), *_missed(history)]  # what explains most comes first
    kinds = ("never_at_rest", "retries_exhausted", "flapping")
    failed = events_of(history, Kind.ATTEMPT_FAILED)
    numbers = {
        "count": len(found),
        **{kind: sum(trouble.kind == kind for trouble in found) for kind in kinds},
        "rounds_most": max((len(rounds) for rounds in _rounds(history).values()), default=0),
        "conflicts": sum(event.of("reason") == AttemptFailure.CONFLICT for event in failed),
    }
    if found:
        return violated(found[0].why, found[0].witness, numbers)
    nothing = None if events_of(history, Kind.REBALANCE_BEGAN) else "no member ever rebalanced"
    why = "every change ended at rest, and no member gave up"
    return not_violated(history, why, numbers, vacuous=nothing)


# -- never at rest ------------------------------------------------------------------------------


def _missed(history: History) -> list[_Trouble]:
    limits, (end_us, _) = bounds(history), closing_us(history)
    bound_us = limits.expiry_us + 2 * limits.rebalance_us + limits.quiet_us
    found: list[_Trouble] = []
    if lacking(history) is not None:
        return found
    for missed in events_of(history, Kind.REST_MISSED):
        if missed.at_us > end_us or missed.of("at_rest") is True:
            continue
        last = _last_change(history, missed)
        if last is None or missed.at_us - last.at_us <= bound_us or under_way(history, missed):
            continue
        why = (
            f"the group was not at rest {seconds(missed.at_us - last.at_us)} after the last change: "
            f"{missed.of('why')}; the bound is {seconds(bound_us)}"
        )
        found.append(_Trouble("never_at_rest", why, (last.id, missed.id)))
    return found


def _last_change(history: History, before: Event) -> Event | None:
    """The last external change of the group."""
    kinds = (Kind.MEMBER_STARTED, Kind.MEMBER_CLOSING, Kind.FAULT_BEGAN, Kind.FAULT_ENDED, Kind.SESSION_CLOSED)
    events = [event for event in events_of(history, *kinds) if event.at_us <= before.at_us]
    changes = [event for event in _changes_from_outside(history) if event.at_us <= before.at_us]
    return max((*events, *changes), key=order, default=None)


@once
def _changes_from_outside(history: History) -> list[Event]:
    """Changes of brokers, topics and ids; of an id in one session only its first creation and its end."""
    registered: set[tuple[object, str | None]] = set()
    found = []
    for event in membership_changes(history):
        again = (event.of("path"), event.session) in registered
        registered.add((event.of("path"), event.session))
        if event.member is None or event.of("with_session") is True or not again:
            found.append(event)
    return found


# -- retries exhausted --------------------------------------------------------------------------


def _exhausted(history: History) -> list[_Trouble]:
    rests = rests_of(history)
    end_us, _ = closing_us(history)
    assembled_us = rests[0].at_us if rests else end_us
    found = []
    for life in member_lives(history):
        for index, rebalance in enumerate(life.rebalances):
            if (
                rebalance.outcome != RebalanceOutcome.FAILED
                or rebalance.ended is None
                or rebalance.ended.at_us > end_us
            ):
                continue
            after = life.rebalances[index + 1 :]
            if rebalance.ended.at_us <= assembled_us and _resumed(after, assembled_us):
                continue  # it recovered while the group formed
            why = f"{life.member} gave up after {rebalance.ended.of('attempts')} attempts"
            stands = _stands(rests, rebalance, after)
            if stands is not None:
                why += ", and owned nothing at the next rest"
            witness = (rebalance.began.id, rebalance.ended.id, None if stands is None else stands.id)
            found.append(_Trouble("retries_exhausted", why, witness))
    return found


def _resumed(after: Sequence[Rebalance], by_us: int) -> bool:
    return any(later.began.at_us <= by_us for later in after)


def _stands(rests: Sequence[Event], failed: Rebalance, after: Sequence[Rebalance]) -> Event | None:
    """The first rest after the failure, if no rebalance of the member began before it."""
    assert failed.ended is not None
    rest = next((rest for rest in rests if rest.at_us >= failed.ended.at_us), None)
    return None if rest is None or _resumed(after, rest.at_us) else rest


# -- flapping -----------------------------------------------------------------------------------


def _flapping(history: History) -> list[_Trouble]:
    rests = rests_of(history)
    times = [rest.at_us for rest in rests]
    # A rest follows a quiet time: what the registry dates within 2 ms before it came after it.
    changes = Counter(bisect_right(times, event.at_us + TOLERANCE_US) for event in membership_changes(history))
    found = []
    for (life, index), rounds in _rounds(history).items():
        if len(rounds) > ROUNDS_PER_CHANGE * max(1, changes[index]):
            why = f"{life} rebalanced {len(rounds)} times between two rests, for {changes[index]} changes"
            witness = (rests[index - 1].id, rounds[-1].began.id, rests[index].id)
            found.append(_Trouble("flapping", why, witness))
    return found


@once
def _rounds(history: History) -> dict[tuple[str, int], list[Rebalance]]:
    """(member, i): its rebalances after rest i-1 and until rest i."""
    times = [rest.at_us for rest in rests_of(history)]
    found: dict[tuple[str, int], list[Rebalance]] = {}
    for life in member_lives(history):
        for rebalance in life.rebalances:
            index = bisect_right(times, rebalance.began.at_us)
            if 0 < index < len(times):
                found.setdefault((life.member, index), []).append(rebalance)
    return found


CHECK = Check(
    name="non_convergence",
    title="Non-convergence",
    compares=(Layer.OP, Layer.REGISTRY),
    meaning="The group did not reach agreement: a member gave up, or the group never came to rest.",
    together=(
        "Every member follows the rule, meets a conflict, and tries again, as the others do. No member knows whether "
        "the others have succeeded, so none can distinguish a short wait from an endless one."
    ),
    plants=(Planted("ignore-watch", "walkthrough"),),
    judge=judge,
    applies_to=(ZK,),
)
