"""The next leader is the first replica of the assignment that is alive and in sync (claim E5b).

The article says that it is the first of the ISR. The state znode lists the ISR in an order of its own: a replica that
has left and joined again stands last. Elections decide it in which the two orders name different brokers.

Witness: the state before the election, and the one after.
"""

from __future__ import annotations

from typing import NamedTuple

from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.partition_states import assignments, partition_states
from rebalance_lab.history.events import Event, Layer
from rebalance_lab.history.files import History
from rebalance_lab.wire.cluster import NO_LEADER


class Election(NamedTuple):
    """`first`: the first in sync of the assignment. `before`, `after`: the events of the states around it."""

    partition: str
    leader: int
    first: int
    before: Event
    after: Event


def judge(history: History) -> Finding:
    """Measures: `count`, elections of another broker; `deciding`, elections in which the two orders differ."""
    elections = deciding(history)
    others = [each for each in elections if each.leader != each.first]
    measures = {"count": len(others), "deciding": len(elections)}
    if others:
        wrong = others[0]
        why = f"{wrong.partition}: broker {wrong.leader} leads, and {wrong.first} stands before it in the assignment"
        return violated(why, (wrong.before.id, wrong.after.id), measures)
    return not_violated(history, "each new leader was the first in sync of its assignment", measures)


def deciding(history: History) -> list[Election]:
    """The elections in which the order of the ISR and that of the assignment name different brokers."""
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
                found.append(Election(f"{partition[0]}-{partition[1]}", state.leader, first, before, event))
            leader, before = (leader if state.leader == NO_LEADER else state.leader), event
    return found


CHECK = Check(
    name="assignment_order",
    compares=(Layer.REGISTRY,),
    meaning="A replica became the leader though another one in sync stands before it in the assignment.",
    together="The assignment names a replica that is alive and in sync first, and the controller chose another one.",
    statement="The next leader is the first replica of the assignment that is alive and in sync",
    plants=(Planted("elects-by-isr", "isr-election", settings={}),),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=deciding,
)
