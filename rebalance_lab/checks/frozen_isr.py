"""Frozen ISR: a leader keeps a replica in its ISR that the state znode has no more (KAFKA-2729).

The high watermark waits for every replica that the leader counts as in sync, so a dead one that it keeps holds up all
writes with acks=all. A leader may be late with a change that another has written: its controller may fail before it
has told the leader, and the next one is elected once the session of the first has ended. So the leader has a session
timeout and two ticks for that, and half as long to be told.

It counts from the state znode's change until the leader gives the replica up, does not lead any more, according to
itself or to the znode, or its process is killed.

Witness: the change of the state znode, what the leader believed then, and the event that ended it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

from rebalance_lab.checks.broker_names import broker_names
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.partition_states import Place, partition_states, place_of
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.events import Event, Kind, Layer, order
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import KILL
from rebalance_lab.history.replicas import APPENDED, COMMITTED, FOLLOWS, ISR_ASSUMED, LEADS, REPLICA_ENDED
from rebalance_lab.history.views import events_of, grouped
from rebalance_lab.wire.cluster import LeaderIsrAndControllerEpoch


def bound_us(parameters: Mapping[str, object]) -> int:
    """How late a leader may be; of the parameters of a trial."""
    session_ms, tick_ms = parameters.get("session_timeout_ms"), parameters.get("tick_ms")
    assert isinstance(session_ms, int) and isinstance(tick_ms, int), "every trial has them"
    return (session_ms + 2 * tick_ms) * 1500


class Frozen(NamedTuple):
    """`leader`: the actor. `kept`: a broker that the znode has no more. `end`: None if the history ends first."""

    place: Place
    leader: str
    kept: int
    changed: Event
    believed: Event
    end: Event | None
    length_us: int


def judge(history: History) -> Finding:
    """Measures: `count`, replicas that were kept for too long; `longest_us`, the longest time for which one was;
    `stalled_us`, the longest time for which a leader had a record and did not commit it."""
    limit_us = bound_us(history.trial.parameters)
    found = frozen(history)
    late = [each for each in found if each.length_us > limit_us]
    measures = {
        "count": len(late),
        "longest_us": max((each.length_us for each in found), default=0),
        "stalled_us": max(_stalls_us(history), default=0),
    }
    if late:
        worst = max(late, key=lambda each: each.length_us)
        return violated(
            f"{worst.leader} kept broker {worst.kept} in its ISR of {worst.place} for "
            f"{seconds(worst.length_us)}, and the state znode did not",
            (worst.changed.id, worst.believed.id, None if worst.end is None else worst.end.id),
            measures,
        )
    nothing = None if events_of(history, LEADS) else "nobody led"
    why = "every leader took over the changes of its ISR in time"
    return not_violated(history, why, measures, vacuous=nothing, across_layers=True)


def frozen(history: History) -> list[Frozen]:
    """All times for which a leader kept a replica that the state znode had no more, however short."""
    names = broker_names(history)
    killed = [event for event in events_of(history, Kind.FAULT_BIT) if event.of("fault") == KILL]
    beliefs = grouped(events_of(history, LEADS, FOLLOWS, ISR_ASSUMED, REPLICA_ENDED), place_of)
    found: list[Frozen] = []
    for place, states in partition_states(history).items():
        read = {event.id: state for event, state in states}
        partition = _Partition(place, names)
        for event in sorted([*(event for event, _ in states), *beliefs.get(place, ()), *killed], key=order):
            if event.id in read:
                partition.state = event, read[event.id]
            elif event.kind in {LEADS, ISR_ASSUMED}:
                partition.believed[event.actor] = event
            else:
                partition.believed.pop(str(event.of("target")) if event.kind is Kind.FAULT_BIT else event.actor, None)
            found += partition.ended(event)
        found += partition.all_ended(history.events[-1].at_us)
    return found


@dataclass(slots=True)
class _Partition:
    """Where the history stands. `believed`: of each leader what it said last of its ISR. `open`: by leader and kept
    broker, the events since which it is frozen, and the time."""

    place: Place
    names: Mapping[int, str]
    state: tuple[Event, LeaderIsrAndControllerEpoch] | None = None
    believed: dict[str, Event] = field(default_factory=dict)
    open: dict[tuple[str, int], tuple[Event, Event, int]] = field(default_factory=dict)

    def ended(self, event: Event) -> list[Frozen]:
        """What an event has ended; what it has begun is open from now on."""
        now = self._kept()
        found = [self._frozen(each, event, event.at_us) for each in list(self.open) if each not in now]
        for each, (changed, believed) in now.items():
            self.open.setdefault(each, (changed, believed, event.at_us))
        return found

    def all_ended(self, at_us: int) -> list[Frozen]:
        return [self._frozen(each, None, at_us) for each in list(self.open)]

    def _kept(self) -> dict[tuple[str, int], tuple[Event, Event]]:
        """What the leader of the znode keeps."""
        if self.state is None:
            return {}
        changed, state = self.state
        leader = self.names.get(state.leader, "")
        believed = self.believed.get(leader)
        if believed is None:
            return {}
        isr = believed.of("isr")
        assert isinstance(isr, (list, tuple))
        return {(leader, int(each)): (changed, believed) for each in isr if each not in state.isr}

    def _frozen(self, which: tuple[str, int], end: Event | None, at_us: int) -> Frozen:
        changed, believed, since_us = self.open.pop(which)
        return Frozen(self.place, *which, changed, believed, end, at_us - since_us)


def _stalls_us(history: History) -> Iterator[int]:
    """How long each batch of a leader waited until it was committed, its leader led no more, or the history ended."""
    waiting: dict[tuple[str, Place], list[tuple[int, int]]] = {}  # heaps: the smallest offset first
    for event in events_of(history, APPENDED, COMMITTED, FOLLOWS, REPLICA_ENDED, Kind.FAULT_BIT):
        if event.kind is Kind.FAULT_BIT:
            done = [each for each in waiting if event.of("fault") == KILL and each[0] == event.of("target")]
        else:
            done = [(event.actor, place_of(event))]
        for each in done:
            batches = waiting.setdefault(each, [])
            if event.kind is APPENDED:
                heappush(batches, (_number(event, "last"), event.at_us))
                continue
            below = _number(event, "offset") if event.kind is COMMITTED else None
            while batches and (below is None or batches[0][0] < below):
                yield event.at_us - heappop(batches)[1]
    end_us = history.events[-1].at_us
    yield from (end_us - at_us for batches in waiting.values() for _, at_us in batches)


def _number(event: Event, name: str) -> int:
    value = event.of(name)
    assert isinstance(value, int)
    return value


CHECK = Check(
    name="frozen_isr",
    compares=(Layer.BELIEF, Layer.REGISTRY),
    meaning="A leader kept a replica in its ISR for long after the state znode had dropped it.",
    together="The state znode says that the partition goes on without the replica, and its leader waits for it.",
    plants=(Planted("obeys-late", "frozen-isr", settings={"cut": "false"}),),
    judge=judge,
    applies_to=(REPLICATION,),
)
