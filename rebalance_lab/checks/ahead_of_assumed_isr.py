"""A leader counts as committed what a replica that it counts as in sync does not have (R7, WeakIsr).

Whatever a leader takes for the ISR, rightly or not, all below its high watermark is in the log of each replica of that
ISR, and of those that it has asked for. It waits for them, so it must know what they have. This also holds for a leader
that was deposed and has not heard of it, beside which `ahead_of_isr` finds no state of its leader epoch. That check
convicts a leader that assumes too small an ISR; this one does not. Logs are compared by their ends.

The ends are compared when a leader's view of the ISR or its high watermark changes, and when a replica has cut its log
or takes a role, with which its log may be shorter than before.

Witness: the leader's view of the ISR, its high watermark, and the end of the log that is too short.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rebalance_lab.checks.broker_names import broker_names
from rebalance_lab.checks.leader_beliefs import Belief, LeaderBeliefs
from rebalance_lab.checks.log_ends import LogEnds, end_in, replicated_first
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.partition_states import Place, place_of
from rebalance_lab.history.events import Event, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.replicas import (
    COMMITTED,
    FOLLOWS,
    ISR_ASSUMED,
    LEADS,
    REPLICATED,
    TRUNCATED,
    high_watermark_in,
    largest_isr,
)
from rebalance_lab.history.views import events_of

#: The events after which a replica may lack what its leader has committed.
_MOMENTS = frozenset({LEADS, ISR_ASSUMED, COMMITTED, FOLLOWS, TRUNCATED})

_KINDS = tuple(dict.fromkeys((*LogEnds.KINDS, *LeaderBeliefs.KINDS, COMMITTED)))


class Lacks(NamedTuple):
    """`broker` lacks `by` records that the leader of `belief` has committed. `mark`, `end`: the leader's high
    watermark, and the end of the broker's log."""

    belief: Belief
    broker: int
    mark: Event
    end: Event
    by: int


def judge(history: History) -> Finding:
    """Measures: `count`, moments at which a replica that a leader counted as in sync lacked what it had committed;
    `most`, the most records that one lacked; `compared`, ends of logs that were compared with a high watermark."""
    compared = list(_compared(history))
    found = [each for each in compared if each.by > 0]
    measures = {
        "count": len(found),
        "most": max((each.by for each in found), default=0),
        "compared": len(compared),
    }
    if found:
        first = found[0]
        return violated(_told(first), (first.belief.event.id, first.mark.id, first.end.id), measures)
    nothing = None if compared else "no leader counted on a replica whose log is known"
    why = f"every replica that a leader counted as in sync had what was committed, in {len(compared)} comparisons"
    return not_violated(history, why, measures, vacuous=nothing)


def _compared(history: History) -> Iterator[Lacks]:
    names = broker_names(history)
    ends, beliefs = LogEnds(), LeaderBeliefs()
    marks: dict[tuple[str, Place], Event] = {}
    for event in replicated_first(events_of(history, *_KINDS)):
        ends.take(event)
        beliefs.take(event)
        if event.kind in {LEADS, COMMITTED}:
            marks[event.actor, place_of(event)] = event
        if event.kind in _MOMENTS:
            for belief, broker in _touched(event, beliefs, names):
                mark, end = marks.get((belief.actor, belief.place)), ends.of(names.get(broker), belief.place)
                if mark is not None and end is not None:
                    yield Lacks(belief, broker, mark, end, high_watermark_in(mark) - end_in(end))


def _touched(event: Event, beliefs: LeaderBeliefs, names: Mapping[int, str]) -> Iterator[tuple[Belief, int]]:
    """The replicas on which a leader counts, if the event is about the leader or about the replica."""
    for belief in beliefs.of(place_of(event)):
        for broker in sorted(largest_isr(belief.event)):
            if event.actor in {belief.actor, names.get(broker)}:
                yield belief, broker


def _told(found: Lacks) -> str:
    leader = found.belief
    return (
        f"{leader.place}: {leader.actor} has committed up to offset {high_watermark_in(found.mark)} in leader epoch "
        f"{leader.event.of('leader_epoch')}, and the log of broker {found.broker}, on which it counts, ended at "
        f"{end_in(found.end)}"
    )


def _replicated(history: History) -> list[Event]:
    return events_of(history, REPLICATED)


CHECK = Check(
    name="ahead_of_assumed_isr",
    compares=(Layer.BELIEF, Layer.EFFECT),
    meaning="A leader counted records as committed that a replica which it counted as in sync did not have.",
    together="The leader waits for this replica before it commits, and has committed what the replica does not have.",
    plants=(
        Planted("commits-alone", "isr-election", settings={"messages": "60"}),
        Planted("counts-diverging-fetches", "truncation", settings={"schedule": "alone", "unclean": "true"}),
    ),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=_replicated,
)
