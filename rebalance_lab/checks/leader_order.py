"""Elections in which the order of the ISR and that of the assignment name different brokers.

The state znode lists the ISR in an order of its own: a replica that has left and joined again stands last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rebalance_lab.checks.model import Finding, not_violated, violated
from rebalance_lab.checks.partition_states import Place, assignments, partition_states
from rebalance_lab.history.events import Event
from rebalance_lab.history.files import History
from rebalance_lab.wire.cluster import NO_LEADER


class Election(NamedTuple):
    """`by_assignment`, `by_isr`: the first in sync of each. `before`, `after`: the events of the states around it."""

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
    why the order was kept. Measures: `count`, elections of another broker; `deciding`, elections in which the two
    orders differ."""
    elections = deciding(history)
    others = [each for each in elections if each.leader != wanted(each)]
    measures = {"count": len(others), "deciding": len(elections)}
    if others:
        wrong = others[0]
        why = f"{wrong.partition}: broker {wrong.leader} leads, and {instead(wrong)}"
        return violated(why, (wrong.before.id, wrong.after.id), measures)
    return not_violated(history, kept, measures)


def deciding(history: History) -> list[Election]:
    """The elections in which the two orders differ. The leader that has gone or moved is no candidate of either."""
    replicas = assignments(history)
    found = []
    for partition, states in partition_states(history).items():
        leader = NO_LEADER
        before: Event | None = None
        for event, state in states:
            first = next((each for each in replicas.get(partition, ()) if each in state.isr), None)
            elected = before is not None and state.leader not in {NO_LEADER, leader}
            if elected and first is not None and first != state.isr[0]:
                assert before is not None
                found.append(Election(partition, state.leader, first, state.isr[0], before, event))
            leader, before = (leader if state.leader == NO_LEADER else state.leader), event
    return found
