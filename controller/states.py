"""What a controller knows of each partition, of each replica and of each reassignment: its state, and the states it may
change to.

As `PartitionStateMachine` and `ReplicaStateMachine` of Kafka 0.8.2.2 to 3.9.1, which log an illegal change and go on.
Here it is a mistake of the controller, and raised. Kafka has no states of a reassignment; these are the steps of
`KafkaController.onPartitionReassignment` (3.9.1), whose letters and numbers they name.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

from rebalance_lab.assignors import TopicPartition


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


class ReplicaState(Enum):
    """- NON_EXISTENT: never created, or deleted and forgotten.
    - NEW: new in the assignment; its broker may only follow with it.
    - ONLINE: its broker is live, and leads or follows with it.
    - OFFLINE: its broker is gone or shuts down, its disk has failed, or it is about to be deleted.
    - DELETION_STARTED: its broker has been asked to delete it.
    - DELETION_SUCCESSFUL: its broker has deleted it.
    - DELETION_INELIGIBLE: its broker is gone or could not delete it; it is tried again when the broker comes back.
    """

    NON_EXISTENT = "NonExistentReplica"
    NEW = "NewReplica"
    ONLINE = "OnlineReplica"
    OFFLINE = "OfflineReplica"
    DELETION_STARTED = "ReplicaDeletionStarted"
    DELETION_SUCCESSFUL = "ReplicaDeletionSuccessful"
    DELETION_INELIGIBLE = "ReplicaDeletionIneligible"


class ReassignmentStep(Enum):
    """- NONE: the partition is not being reassigned, or its controller has just been elected.
    - ASSIGNING: the replicas that it is to have are written beside those that it has (U1).
    - CANCELLING: replicas of an earlier reassignment that are not wanted any more leave the ISR and are deleted (U3).
    - LOOKING: its state is read, to see whether all wanted replicas are in sync.
    - CATCHING_UP: they are not; its leader is told of them (A1, A2), and they catch up.
    - MOVING_LEADER: they are; one of them leads (B1 to B3).
    - REMOVING: the other replicas leave the ISR, and their brokers are asked to delete them (B4, B5).
    - DELETING: their brokers are waited for. Not in Kafka.
    - ENDING: the replicas that it has now are written (B6).
    """

    NONE = "none"
    ASSIGNING = "assigning"
    CANCELLING = "cancelling"
    LOOKING = "looking"
    CATCHING_UP = "catching up"
    MOVING_LEADER = "moving leader"
    REMOVING = "removing"
    DELETING = "deleting"
    ENDING = "ending"


#: state -> the states it may change to. A partition stays online through another election, and offline through another
#: failure.
PARTITION_TRANSITIONS: dict[PartitionState, frozenset[PartitionState]] = {
    PartitionState.NON_EXISTENT: frozenset({PartitionState.NEW}),
    PartitionState.NEW: frozenset({PartitionState.ONLINE, PartitionState.OFFLINE}),
    PartitionState.ONLINE: frozenset({PartitionState.ONLINE, PartitionState.OFFLINE}),
    PartitionState.OFFLINE: frozenset({PartitionState.ONLINE, PartitionState.OFFLINE, PartitionState.NON_EXISTENT}),
}

#: state -> the states it may change to. Kafka up to 2.2 has no change from OFFLINE to DELETION_INELIGIBLE.
REPLICA_TRANSITIONS: dict[ReplicaState, frozenset[ReplicaState]] = {
    ReplicaState.NON_EXISTENT: frozenset({ReplicaState.NEW}),
    ReplicaState.NEW: frozenset({ReplicaState.ONLINE, ReplicaState.OFFLINE}),
    ReplicaState.ONLINE: frozenset({ReplicaState.ONLINE, ReplicaState.OFFLINE}),
    ReplicaState.OFFLINE: frozenset(
        {
            ReplicaState.ONLINE,
            ReplicaState.OFFLINE,
            ReplicaState.DELETION_STARTED,
            ReplicaState.DELETION_INELIGIBLE,
        }
    ),
    ReplicaState.DELETION_STARTED: frozenset({ReplicaState.DELETION_SUCCESSFUL, ReplicaState.DELETION_INELIGIBLE}),
    ReplicaState.DELETION_SUCCESSFUL: frozenset({ReplicaState.NON_EXISTENT}),
    ReplicaState.DELETION_INELIGIBLE: frozenset({ReplicaState.ONLINE, ReplicaState.OFFLINE}),
}

#: step -> the steps that may follow. Each is given up, and NONE, if another controller has written the state or the
#: topic is gone.
REASSIGNMENT_TRANSITIONS: dict[ReassignmentStep, frozenset[ReassignmentStep]] = {
    ReassignmentStep.NONE: frozenset({ReassignmentStep.ASSIGNING, ReassignmentStep.LOOKING}),
    ReassignmentStep.ASSIGNING: frozenset(
        {ReassignmentStep.CANCELLING, ReassignmentStep.LOOKING, ReassignmentStep.NONE}
    ),
    ReassignmentStep.CANCELLING: frozenset({ReassignmentStep.LOOKING, ReassignmentStep.NONE}),
    ReassignmentStep.LOOKING: frozenset(
        {ReassignmentStep.CATCHING_UP, ReassignmentStep.MOVING_LEADER, ReassignmentStep.NONE}
    ),
    ReassignmentStep.CATCHING_UP: frozenset(
        {
            ReassignmentStep.ASSIGNING,
            ReassignmentStep.LOOKING,
            ReassignmentStep.MOVING_LEADER,
            ReassignmentStep.NONE,
        }
    ),
    ReassignmentStep.MOVING_LEADER: frozenset({ReassignmentStep.REMOVING, ReassignmentStep.NONE}),
    ReassignmentStep.REMOVING: frozenset({ReassignmentStep.DELETING, ReassignmentStep.ENDING, ReassignmentStep.NONE}),
    ReassignmentStep.DELETING: frozenset({ReassignmentStep.ENDING, ReassignmentStep.NONE}),
    ReassignmentStep.ENDING: frozenset({ReassignmentStep.NONE}),
}


class IllegalTransition(Exception):
    """A change that the table does not have. The message is Kafka's."""


def check_partition(partition: TopicPartition, now: PartitionState, target: PartitionState) -> None:
    """Raises IllegalTransition."""
    _check(f"Partition {partition.topic}-{partition.partition}", PARTITION_TRANSITIONS, now, target)


def check_replica(partition: TopicPartition, broker_id: int, now: ReplicaState, target: ReplicaState) -> None:
    """Raises IllegalTransition."""
    name = f"Replica [Topic={partition.topic},Partition={partition.partition},Replica={broker_id}]"
    _check(name, REPLICA_TRANSITIONS, now, target)


def check_reassignment(partition: TopicPartition, now: ReassignmentStep, target: ReassignmentStep) -> None:
    """Raises IllegalTransition."""
    _check(f"The reassignment of {partition.topic}-{partition.partition}", REASSIGNMENT_TRANSITIONS, now, target)


_State = TypeVar("_State", bound=Enum)


def _check(name: str, transitions: Mapping[_State, frozenset[_State]], now: _State, target: _State) -> None:
    if target not in transitions[now]:
        valid = ",".join(str(each.value) for each in transitions if target in transitions[each])
        raise IllegalTransition(
            f"{name} should be in one of {valid} states before moving to {target.value} state. "
            f"Instead it is in {now.value} state"
        )
