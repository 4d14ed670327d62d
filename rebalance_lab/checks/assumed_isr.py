"""A leader waits for a smaller ISR than the state znode holds (R8: the largest ISR contains the controller's).

A leader commits a record once all have it that may be in the ISR: those of the ISR that it knows and of the change that
it has asked for (KIP-497). So the state znode never names a replica in the leader's own leader epoch for which
the leader does not wait. Compared are the leader's belief and the state of the same leader epoch, while both last; a
difference shorter than the clocks' tolerance says nothing.

Witness: the state, and the belief beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rebalance_lab.checks.broker_names import broker_names
from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.checks.leader_beliefs import Belief, LeaderBeliefs
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.partition_states import Place, stood
from rebalance_lab.checks.phases import closing_us
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.events import Event, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.replicas import largest_isr
from rebalance_lab.history.views import events_of


class Counted(NamedTuple):
    """The ISR of a leader epoch, in the state znode or as its leader assumes it, from an event until `end_us`."""

    event: Event
    leader: str | None
    leader_epoch: int
    isr: frozenset[int]
    end_us: int


class Smaller(NamedTuple):
    """A leader counted without `missing` for so long."""

    place: Place
    state: Counted
    belief: Counted
    missing: frozenset[int]
    lasts_us: int


def judge(history: History) -> Finding:
    """Measures: `count`, smaller ISRs; `longest_us`, the longest time of one; `compared`, pairs of a state and a
    belief."""
    compared, found = 0, []
    beliefs = _beliefs(history)
    for place, states in _states(history).items():
        for state, belief in _pairs(states, beliefs.get(place, [])):
            compared += 1
            lasts_us = min(state.end_us, belief.end_us) - max(state.event.at_us, belief.event.at_us)
            if not state.isr <= belief.isr and lasts_us > TOLERANCE_US:
                found.append(Smaller(place, state, belief, state.isr - belief.isr, lasts_us))
    measures = {
        "count": len(found),
        "longest_us": max((each.lasts_us for each in found), default=0),
        "compared": compared,
    }
    if found:
        worst = max(found, key=lambda each: each.lasts_us)
        why = (
            f"{worst.place}: for {seconds(worst.lasts_us)} {worst.belief.leader} led in epoch "
            f"{worst.state.leader_epoch} without counting broker {min(worst.missing)}, which was in the ISR"
        )
        return violated(why, (worst.state.event.id, worst.belief.event.id), measures)
    why = f"leaders counted with all of the ISR, in {compared} comparisons"
    nothing = None if compared else "no leader's belief stood beside its state"
    return not_violated(history, why, measures, vacuous=nothing, across_layers=True)


def _pairs(states: list[Counted], beliefs: list[Counted]) -> Iterator[tuple[Counted, Counted]]:
    """States and beliefs of one leader in one leader epoch, at the same time."""
    for state in states:
        for belief in beliefs:
            same = (state.leader, state.leader_epoch) == (belief.leader, belief.leader_epoch)
            if same and min(state.end_us, belief.end_us) > max(state.event.at_us, belief.event.at_us):
                yield state, belief


def _states(history: History) -> dict[Place, list[Counted]]:
    names = broker_names(history)
    return {
        place: [
            Counted(event, names.get(state.leader), state.leader_epoch, frozenset(state.isr), until_us)
            for event, state, until_us in states
        ]
        for place, states in stood(history, closing_us(history)[0]).items()
    }


def _beliefs(history: History) -> dict[Place, list[Counted]]:
    """What each leader has counted with."""
    end_us = closing_us(history)[0]
    found: dict[Place, list[Counted]] = {}

    def ended(belief: Belief, at_us: int) -> None:
        epoch = int(str(belief.event.of("leader_epoch")))
        isr = largest_isr(belief.event)
        found.setdefault(belief.place, []).append(Counted(belief.event, belief.actor, epoch, isr, min(at_us, end_us)))

    beliefs = LeaderBeliefs()
    for event in events_of(history, *LeaderBeliefs.KINDS):
        for each in beliefs.take(event):
            ended(each, event.at_us)
    for each in beliefs.all:
        ended(each, end_us)
    return found


CHECK = Check(
    name="assumed_isr",
    compares=(Layer.REGISTRY, Layer.BELIEF),
    meaning="A leader counted with fewer replicas than the ISR of its own leader epoch has.",
    together="The replica may be elected, because it is in the ISR, and the leader commits records without it.",
    plants=(Planted("forgets-last-of-isr", "committed-data", settings={"fault": "kill"}),),
    judge=judge,
    applies_to=(REPLICATION,),
)
