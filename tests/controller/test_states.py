"""Every legal and every illegal change of the state of a partition, of a replica and of a reassignment."""

from __future__ import annotations

import itertools

import pytest

from controller.states import (
    IllegalTransition,
    PartitionState,
    ReassignmentStep,
    ReplicaState,
    check_partition,
    check_reassignment,
    check_replica,
)
from rebalance_lab.assignors import TopicPartition

P = PartitionState
R = ReplicaState
S = ReassignmentStep
T0 = TopicPartition("t", 0)

#: As `validPreviousStates` of Kafka 3.9.1 has them: target -> from.
PARTITIONS = {
    P.NEW: {P.NON_EXISTENT},
    P.ONLINE: {P.NEW, P.ONLINE, P.OFFLINE},
    P.OFFLINE: {P.NEW, P.ONLINE, P.OFFLINE},
    P.NON_EXISTENT: {P.OFFLINE},
}
REPLICAS = {
    R.NEW: {R.NON_EXISTENT},
    R.ONLINE: {R.NEW, R.ONLINE, R.OFFLINE, R.DELETION_INELIGIBLE},
    R.OFFLINE: {R.NEW, R.ONLINE, R.OFFLINE, R.DELETION_INELIGIBLE},
    R.DELETION_STARTED: {R.OFFLINE},
    R.DELETION_SUCCESSFUL: {R.DELETION_STARTED},
    R.DELETION_INELIGIBLE: {R.OFFLINE, R.DELETION_STARTED},
    R.NON_EXISTENT: {R.DELETION_SUCCESSFUL},
}
#: The steps of `onPartitionReassignment` in their order, with what may interrupt them: target -> from.
STEPS = {
    S.ASSIGNING: {S.NONE, S.CATCHING_UP},
    S.CANCELLING: {S.ASSIGNING},
    S.LOOKING: {S.NONE, S.ASSIGNING, S.CANCELLING, S.CATCHING_UP},
    S.CATCHING_UP: {S.LOOKING},
    S.MOVING_LEADER: {S.LOOKING, S.CATCHING_UP},
    S.REMOVING: {S.MOVING_LEADER},
    S.DELETING: {S.REMOVING},
    S.ENDING: {S.REMOVING, S.DELETING},
    S.NONE: set(S) - {S.NONE},
}


@pytest.mark.parametrize(("now", "target"), list(itertools.product(P, P)))
def test_each_change_of_a_partition(now: P, target: P) -> None:
    if now in PARTITIONS[target]:
        check_partition(T0, now, target)
    else:
        with pytest.raises(IllegalTransition, match=rf"t-0 .* moving to {target.value} .* is in {now.value}"):
            check_partition(T0, now, target)


@pytest.mark.parametrize(("now", "target"), list(itertools.product(R, R)))
def test_each_change_of_a_replica(now: R, target: R) -> None:
    if now in REPLICAS[target]:
        check_replica(T0, 1, now, target)
    else:
        with pytest.raises(IllegalTransition, match=rf"t,.*=0,.*=1.* moving to {target.value} .* is in {now.value}"):
            check_replica(T0, 1, now, target)


@pytest.mark.parametrize(("now", "target"), list(itertools.product(S, S)))
def test_each_step_of_a_reassignment(now: S, target: S) -> None:
    if now in STEPS[target]:
        check_reassignment(T0, now, target)
    else:
        with pytest.raises(IllegalTransition, match=rf"t-0 .* moving to {target.value} .* is in {now.value}"):
            check_reassignment(T0, now, target)
