"""A leader drops a follower from the ISR before it can have been behind for long.

A follower may be behind for `replica.lag.time.max.ms`. When a leader epoch begins, each replica of its ISR is in sync,
so the leader has no reason to drop one before that time has passed. The followers need it to hear of the new leader and
to connect. A follower that joins later must have caught up, so it has that time from then on; one that is dropped
earlier joined too soon, and the ISR may flap (KAFKA-19996). It joins when the leader asks for an ISR with it, or, if no
leader has recorded that, when the state znode has it. What the controller takes out of an ISR begins another leader
epoch, and is not looked at.

Witness: the state with which the leader epoch began, or the event with which the follower joined, and the state without
it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.partition_states import Place, lives, partition_states, place_of
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.events import Event, Layer, order
from rebalance_lab.history.files import History
from rebalance_lab.history.replicas import ISR_ASSUMED, largest_isr
from rebalance_lab.history.views import events_of, grouped


class Shrink(NamedTuple):
    """`dropped`: a replica that was in the ISR of this leader epoch since the event `since`, with which the epoch began
    or, if `joined`, with which it joined."""

    partition: Place
    leader: int
    dropped: int
    joined: bool
    since: Event
    event: Event

    @property
    def after_us(self) -> int:
        return self.event.at_us - self.since.at_us


def judge(history: History) -> Finding:
    """Measures: `count`, replicas that were dropped early, each time that one was; `joined`, those of them that had
    joined in this leader epoch; `shrinks`, all drops that were looked at; `least_us`, the shortest time in the ISR
    before a drop, 0 if there was none."""
    found = shrinks(history)
    lag_us = 1000 * int(str(history.trial.parameters["lag_ms"]))
    early = [each for each in found if each.after_us < lag_us - TOLERANCE_US]
    measures = {
        "count": len(early),
        "joined": sum(each.joined for each in early),
        "shrinks": len(found),
        "least_us": min((each.after_us for each in found), default=0),
    }
    if early:
        first = early[0]
        since = "it had joined" if first.joined else "its leader epoch began"
        why = (
            f"{first.partition}: broker {first.leader} dropped broker {first.dropped} from the ISR "
            f"{seconds(first.after_us)} after {since}, and it may lag for {seconds(lag_us)}"
        )
        return violated(why, (first.since.id, first.event.id), measures)
    nothing = None if partition_states(history) else "no partition has a state"
    why = "leaders dropped only followers that had time to catch up"
    return not_violated(history, why, measures, vacuous=nothing)


def shrinks(history: History) -> list[Shrink]:
    """Each drop of a replica by the leader of its epoch, in the order of the states."""
    found = []
    views = grouped(events_of(history, ISR_ASSUMED), place_of)
    for place, states in lives(history):
        since: dict[int, tuple[bool, Event]] = {}
        epoch, written = -1, None
        for event, state in states:
            isr = frozenset(state.isr)
            if state.leader_epoch != epoch:
                since = dict.fromkeys(isr, (False, event))
            dropped = sorted(since.keys() - isr)
            found += [Shrink(place, state.leader, each, *since.pop(each), event) for each in dropped]
            asked = _asked(views.get(place, ()), state.leader_epoch, written, event)
            since |= {each: (True, asked.get(each, event)) for each in isr - since.keys()}
            epoch, written = state.leader_epoch, event
    return found


def _asked(views: Iterable[Event], leader_epoch: int, after: Event | None, until: Event) -> dict[int, Event]:
    """Broker -> the first view of a leader, after the last state was written, in which it was to join."""
    found: dict[int, Event] = {}
    for event in views:
        in_time = (after is None or order(after) < order(event)) and order(event) < order(until)
        if in_time and event.of("leader_epoch") == leader_epoch:
            found = dict.fromkeys(largest_isr(event), event) | found
    return found


CHECK = Check(
    name="early_shrink",
    compares=(Layer.REGISTRY,),
    meaning="A leader dropped a follower from the ISR before replica.lag.time.max.ms had passed in its leader epoch.",
    together="The follower was in sync when the epoch began, and cannot have been behind for as long as it may.",
    plants=(Planted("drops-without-grace", "leader-start", settings={"grace": "true"}),),
    judge=judge,
    applies_to=(REPLICATION,),
)
