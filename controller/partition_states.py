"""What a controller knows of each partition: its state, and the states it may change to.

As `PartitionStateMachine` of Kafka 0.8.2.2 to 3.9.1, which logs an illegal change and goes on. Here it is a mistake of
the controller, and raised.
"""

from __future__ import annotations

from enum import Enum


class PartitionState(Enum):
    """- NON_EXISTENT: never created, or deleted.
    - NEW: it has an assignment, and no leader and ISR yet.
    - ONLINE: a leader has been elected.
    - OFFLINE: the leader died after its election.
    """

    NON_EXISTENT = "NonExistentPartition"
    NEW = "NewPartition"
    ONLINE = "OnlinePartition"
    OFFLINE = "OfflinePartition"


#: state -> the states it may change to. A partition stays online through another election, and offline through another
#: failure.
PARTITION_TRANSITIONS: dict[PartitionState, frozenset[PartitionState]] = {
    PartitionState.NON_EXISTENT: frozenset({PartitionState.NEW}),
    PartitionState.NEW: frozenset({PartitionState.ONLINE, PartitionState.OFFLINE}),
    PartitionState.ONLINE: frozenset({PartitionState.ONLINE, PartitionState.OFFLINE}),
    PartitionState.OFFLINE: frozenset({PartitionState.ONLINE, PartitionState.OFFLINE, PartitionState.NON_EXISTENT}),
}


class IllegalPartitionTransition(Exception):
    """A change that the table does not have. The message is Kafka's."""


def check_transition(topic: str, partition: int, now: PartitionState, target: PartitionState) -> None:
    """Raises IllegalPartitionTransition."""
    if target not in PARTITION_TRANSITIONS[now]:
        valid = ",".join(each.value for each in PartitionState if target in PARTITION_TRANSITIONS[each])
        raise IllegalPartitionTransition(
            f"Partition {topic}-{partition} should be in one of {valid} states before moving to {target.value} state. "
            f"Instead it is in {now.value} state"
        )
