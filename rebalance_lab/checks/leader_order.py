"""Elections in which the order of the ISR and that of the assignment name different brokers.

The state znode lists the ISR in an order of its own: a replica that has left and joined again stands last.
"""

from __future__ import annotations

from typing import NamedTuple

from rebalance_lab.checks.partition_states import assignments, partition_states
from rebalance_lab.history.events import Event
from rebalance_lab.history.files import History
from rebalance_lab.wire.cluster import NO_LEADER


class Election(NamedTuple):
    """`by_assignment`, `by_isr`: the first in sync of each. `before`, `after`: the events of the states around it."""

    partition: str
    leader: int
    by_assignment: int
    by_isr: int
    before: Event
    after: Event


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
                name = f"{partition[0]}-{partition[1]}"
                found.append(Election(name, state.leader, first, state.isr[0], before, event))
            leader, before = (leader if state.leader == NO_LEADER else state.leader), event
    return found
