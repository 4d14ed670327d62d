"""The next leader is the first replica of the assignment that is alive and in sync (claim E5b).

The article says that it is the first of the ISR. The state znode lists the ISR in an order of its own: a replica that
has left and joined again stands last. Elections decide it in which the two orders name different brokers.

Witness: the state before the election, and the one after.
"""

from __future__ import annotations

from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.partition_states import assignments, partition_states
from rebalance_lab.history.events import Event, Layer
from rebalance_lab.history.files import History
from rebalance_lab.wire.cluster import NO_LEADER


def judge(history: History) -> Finding:
    """Measures: `count`, elections of another broker; `deciding`, elections in which the two orders differ."""
    replicas = assignments(history)
    others: list[tuple[str, Event, Event]] = []
    deciding = 0
    for partition, states in partition_states(history).items():
        leader = NO_LEADER
        before: Event | None = None
        for event, state in states:
            first = next((each for each in replicas.get(partition, ()) if each in state.isr), None)
            if before is not None and state.leader not in {NO_LEADER, leader} and first is not None:
                deciding += first != state.isr[0]
                if state.leader != first:
                    why = f"broker {state.leader} leads; {first} is in sync and stands before it in the assignment"
                    others.append((f"{partition[0]}-{partition[1]}: {why}", before, event))
            leader, before = (leader if state.leader == NO_LEADER else state.leader), event
    measures = {"count": len(others), "deciding": deciding}
    if others:
        why, one, other = others[0]
        return violated(why, (one.id, other.id), measures)
    nothing = None if deciding else "no election in which the order of the ISR differs from that of the assignment"
    return not_violated(history, "each new leader was the first in sync of its assignment", measures, vacuous=nothing)


CHECK = Check(
    name="assignment_order",
    compares=(Layer.REGISTRY,),
    meaning="A replica became the leader though another one in sync stands before it in the assignment.",
    together="The assignment names a replica that is alive and in sync first, and the controller chose another one.",
    statement="The next leader is the first replica of the assignment that is alive and in sync",
    plants=(Planted("elects-by-isr", "isr-election", settings={}),),
    judge=judge,
    applies_to=(REPLICATION,),
)
