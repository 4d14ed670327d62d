"""A leader drops a follower from the ISR before it can have been behind for long.

A follower may be behind for `replica.lag.time.max.ms`. When a leader epoch begins, each replica of its ISR is in sync,
so the leader has no reason to drop one before that time has passed. The followers need it to hear of the new leader and
to connect. What the controller takes out of an ISR begins another leader epoch, and is not looked at.

Witness: the state with which the leader epoch began, and the one without the follower.
"""

from __future__ import annotations

from typing import NamedTuple

from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.partition_states import Place, partition_states
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.events import Event, Layer
from rebalance_lab.history.files import History


class Shrink(NamedTuple):
    """`began`: the state with which the leader epoch began. `dropped`: replicas that were in its ISR from then on."""

    partition: Place
    leader: int
    dropped: frozenset[int]
    began: Event
    event: Event

    @property
    def after_us(self) -> int:
        return self.event.at_us - self.began.at_us


def judge(history: History) -> Finding:
    """Measures: `count`, replicas that were dropped early; `shrinks` that were looked at; `least_us`, the time from the
    beginning of a leader epoch to its first shrink, the shortest of all; 0 if there is none."""
    found = shrinks(history)
    lag_us = 1000 * int(str(history.trial.parameters["lag_ms"]))
    early = [each for each in found if each.after_us < lag_us - TOLERANCE_US]
    measures = {
        "count": sum(len(each.dropped) for each in early),
        "shrinks": len(found),
        "least_us": min((each.after_us for each in found), default=0),
    }
    if early:
        first = early[0]
        why = (
            f"{first.partition}: broker {first.leader} dropped broker {min(first.dropped)} from the ISR "
            f"{seconds(first.after_us)} after its leader epoch began, and it may lag for {seconds(lag_us)}"
        )
        return violated(why, (first.began.id, first.event.id), measures)
    nothing = None if partition_states(history) else "no partition has a state"
    why = "leaders dropped only followers that had time to catch up"
    return not_violated(history, why, measures, vacuous=nothing)


def shrinks(history: History) -> list[Shrink]:
    """The states in which a leader has dropped replicas that were in the ISR when its leader epoch began."""
    found = []
    for place, states in partition_states(history).items():
        began: Event | None = None
        epoch, kept = -1, frozenset[int]()
        for event, state in states:
            if began is None or state.leader_epoch != epoch:
                began, epoch, kept = event, state.leader_epoch, frozenset(state.isr)
                continue
            dropped = kept - frozenset(state.isr)
            if dropped:
                found.append(Shrink(place, state.leader, dropped, began, event))
            kept -= dropped
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
