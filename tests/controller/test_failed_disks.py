"""Disks and log folders that fail (KIP-112): a state, a stimulus, the expected instructions."""

from __future__ import annotations

from controller_machine import (
    T0,
    T1,
    brief,
    broker,
    carried_out,
    running,
    stored,
    with_leader_1,
    writes,
)

from controller.cluster import Topic
from controller.leader_election import LeaderAndIsr
from controller.request_batch import Send
from controller.states import ReplicaState
from controller.stimuli import (
    BrokersRead,
    DeletionsRead,
    DropReports,
    LeadershipAnswered,
    Log,
    LogDirsFailed,
    UncleanRead,
    WriteStates,
)
from rebalance_lab.wire.cluster import NO_LEADER
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.update_metadata import UpdateMetadataRequest


def disk_failed(broker_id: int) -> LeadershipAnswered:
    return LeadershipAnswered(broker_id, (), {T0: ErrorCode.KAFKA_STORAGE_ERROR})


def test_a_leader_whose_disk_has_failed_is_followed_by_another() -> None:
    it = running({"t": Topic({0: (1, 2)})}, {T0: stored(1, 1, 2)})
    found = carried_out(it, disk_failed(1))
    assert found[0] == Log("broker 1 does not take its role for t-0: KAFKA_STORAGE_ERROR")
    assert writes(found) == [{T0: LeaderAndIsr(2, 1, (2,))}]
    assert (1, "delete", [(0, 1, False)]) in brief(found)
    assert it.cluster.replica_states[T0] == {1: ReplicaState.OFFLINE, 2: ReplicaState.ONLINE}


def test_a_failed_disk_is_in_no_isr_and_leads_nothing_until_its_broker_is_back() -> None:
    it = running({"t": Topic({0: (1, 2)})}, {T0: stored(1, 1, 2)})
    assert writes(carried_out(it, disk_failed(2))) == [{T0: LeaderAndIsr(1, 1, (1,))}]
    assert carried_out(it, disk_failed(2)) == [Log("broker 2 does not take its role for t-0: KAFKA_STORAGE_ERROR")]
    assert writes(carried_out(it, BrokersRead([broker(2)]))) == [{T0: LeaderAndIsr(NO_LEADER, 2, (1,))}]
    assert it.handle(UncleanRead([T0], {"t"})) == [
        Log("partition t-0 has no leader: none of the replicas 1, 2 is live; start one of these brokers")
    ]
    carried_out(it, BrokersRead([broker(2, epoch=900)]))
    assert it.handle(UncleanRead([T0], {"t"})) == [WriteStates({T0: (LeaderAndIsr(2, 3, (2,), recovering=True), 2)})]


def test_the_metadata_names_replicas_that_are_offline() -> None:
    it = with_leader_1()
    found = carried_out(it, disk_failed(2))
    told = [
        each.request for each in found if isinstance(each, Send) and isinstance(each.request, UpdateMetadataRequest)
    ]
    assert told[-1].topic_states[0].partition_states[0].offline_replicas == (2,)


def test_a_role_that_is_taken_again_brings_the_replica_back() -> None:
    it = with_leader_1()
    carried_out(it, disk_failed(2))
    assert it.cluster.may_lead(T0) == (1, 3)
    it.handle(LeadershipAnswered(2, [T0]))
    assert it.cluster.may_lead(T0) == (1, 2, 3)


def test_a_broker_that_has_lost_a_log_folder_is_asked_for_all_its_replicas() -> None:
    """KIP-112: also for those without a leader."""
    states = {T0: stored(1, 1, 2, leader_epoch=5), T1: stored(NO_LEADER, 3, leader_epoch=2)}
    it = running({"t": Topic({0: (1, 2), 1: (1, 3)})}, states)
    told = [(0, 1, 5), (1, -1, 2)]
    assert brief(it.handle(LogDirsFailed([1, 3], ["r"]))) == [
        (1, "lead", told),
        *((each, "inform", told) for each in (1, 2)),
        DropReports(["r"]),
    ]
    assert writes(carried_out(it, disk_failed(1)))[0] == {T0: LeaderAndIsr(2, 6, (2,))}


def test_a_disk_that_is_known_to_have_failed_is_asked_for_again_and_stays_offline() -> None:
    it = with_leader_1()
    carried_out(it, disk_failed(1))
    assert brief(it.handle(LogDirsFailed([1], [])))[0] == (1, "lead", [(0, 2, 6)])
    assert it.cluster.replica_states[T0][1] is ReplicaState.OFFLINE
    assert it.handle(disk_failed(1))[1:] == []


def test_a_replica_that_is_being_deleted_is_not_asked_for() -> None:
    it = with_leader_1()
    it.handle(DeletionsRead(["t"]))
    assert it.handle(LogDirsFailed([1], ["r"])) == [DropReports(["r"])]


def test_a_role_refused_for_another_reason_is_reported_only() -> None:
    it = running({"t": Topic({0: (1,)})}, {T0: stored(1, 1)})
    assert it.handle(LeadershipAnswered(1, (), {T0: ErrorCode.UNKNOWN_SERVER_ERROR})) == [
        Log("broker 1 does not take its role for t-0: UNKNOWN_SERVER_ERROR")
    ]
