"""Elections in which the orders of the ISR and of the assignment name different brokers, or neither names the leader.

The state znode lists the ISR in an order of its own: a replica that has left and joined again stands last. The order
that counts is that of the ISR as the last leader had it: whoever elects writes the ISR anew, in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import NamedTuple

from rebalance_lab.checks.model import Finding, not_violated, violated
from rebalance_lab.checks.partition_states import Place, lives, replicas_at
from rebalance_lab.history.events import Event
from rebalance_lab.history.files import History
from rebalance_lab.wire.cluster import NO_LEADER, LeaderIsrAndControllerEpoch


class Election(NamedTuple):
    """`by_assignment`, `by_isr`: the first of each that is in the new ISR. `before`, `after`: the events of the states
    around it."""

    partition: Place
    leader: int
    by_assignment: int
    by_isr: int
    before: Event
    after: Event


def judge_order(
    history: History, wanted: Callable[[Election], int], *, instead: Callable[[Election], str], kept: str
) -> Finding:
    """Whether each new leader was the wanted one. `instead`: what speaks for the wanted one, if another leads; `kept`:
    why the order was kept. Measures: `count`, elections of another broker; `deciding`, elections that keep one of the
    two orders at most."""
    elections = deciding(history)
    others = [each for each in elections if each.leader != wanted(each)]
    measures = {"count": len(others), "deciding": len(elections)}
    if others:
        wrong = others[0]
        why = f"{wrong.partition}: broker {wrong.leader} leads, and {instead(wrong)}"
        return violated(why, (wrong.before.id, wrong.after.id), measures)
    return not_violated(history, kept, measures)


def deciding(history: History) -> list[Election]:
    """The elections that keep one of the two orders at most. The leader that has gone or moved is no candidate of
    either."""
    found = []
    for partition, states in lives(history):
        led: LeaderIsrAndControllerEpoch | None = None
        before: Event | None = None
        for event, state in states:
            if led is not None and before is not None and state.leader not in {NO_LEADER, led.leader}:
                first, other = (_first(order, state.isr) for order in (replicas_at(history, partition, event), led.isr))
                if first is not None and other is not None and len({first, other, state.leader}) > 1:
                    found.append(Election(partition, state.leader, first, other, before, event))
            led, before = (led if state.leader == NO_LEADER else state), event
    return found


def _first(order: Sequence[int], isr: Container[int]) -> int | None:
    return next((each for each in order if each in isr), None)
