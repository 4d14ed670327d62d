"""Brokers of different releases in one cluster, and the versions in which they ask each other."""

from __future__ import annotations

from typing import Any

import pytest
from cluster_stage import T0, ClusterStage

from rebalance_lab.broker.calls import BrokerConfig
from rebalance_lab.broker.replication.rules import IsrWriter, ReplicationRules
from rebalance_lab.broker.versions import ProtocolVersion, Release, merged
from rebalance_lab.wire.kafka.apis import APIS, ApiKey
from rebalance_lab.wire.kafka.error_codes import ErrorCode as E
from rebalance_lab.wire.kafka.messages.delete_topics import DeleteTopicsRequest
from rebalance_lab.wire.kafka.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
)

OLD: dict[str, Any] = {"lab_release": Release.V1_1, "inter_broker_protocol_version": ProtocolVersion.V1_1}
V1_1: dict[str, Any] = {"inter_broker_protocol_version": ProtocolVersion.V1_1}


def refusals(stage: ClusterStage, broker: int) -> list[str]:
    """Why a broker has closed connections."""
    return [str(each["why"]) for each in stage.brokers[broker].said("connection closed")]


def has_role(stage: ClusterStage, broker: int) -> bool:
    return T0 in stage.brokers[broker].broker.parts.replicas.all


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("of", [{}, {3: OLD}, {1: OLD, 2: OLD}, {1: OLD, 2: OLD, 3: OLD}])
def test_in_a_protocol_that_all_know_every_duty_is_done(of: dict[int, Any], seed: int) -> None:
    async def story(stage: ClusterStage) -> None:
        await stage.create([3, 1, 2])
        await stage.until_state(lambda state: set(state.isr) == {1, 2, 3})
        await stage.until(lambda: stage.leads(3), "the first leader")
        assert (await stage.produce(3, "a")).error_code == E.NONE
        stage.brokers[2].process.pause()  # the leader drops it, and writes the ISR
        await stage.until_state(lambda state: set(state.isr) == {1, 3})
        stage.brokers[2].process.resume()
        await stage.until_state(lambda state: set(state.isr) == {1, 2, 3})
        stage.kill(3)
        await stage.until_state(lambda state: state.leader == 1 and 3 not in state.isr)
        await stage.until(lambda: stage.leads(1), "the next leader")
        assert (await stage.produce(1, "b")).error_code == E.NONE
        await stage.start(3)
        await stage.until_state(lambda state: set(state.isr) == {1, 2, 3})
        assert [await stage.read_log(each) for each in (1, 2, 3)] == [["a", "b"]] * 3
        await stage.ask(1, DeleteTopicsRequest(topic_names=("t",), timeout_ms=5000), 1)
        await stage.until(
            lambda: all(T0 not in stage.brokers[each].broker.parts.replicas.all for each in (1, 2, 3)), ""
        )
        assert all(refusals(stage, each) == [] for each in (1, 2, 3))

    ClusterStage(seed=seed, of=of, replica_lag_time_max_ms=1000, lab_broker_epochs=False, **V1_1).play(story)


def test_a_broker_that_does_not_know_the_protocol_hears_of_nothing() -> None:
    async def story(stage: ClusterStage) -> None:
        await stage.start(3)
        await stage.until(lambda: len(refusals(stage, 3)) > 0, "a refusal")
        await stage.create([3, 1, 2])
        state = await stage.until_state(lambda state: state.leader == 3)
        orders, fetches = (
            "UPDATE_METADATA version 6 is not served here, 0 to 4 are",
            "FETCH version 12 is not served here, 4 to 7 are",
        )
        await stage.until(lambda: set(refusals(stage, 3)) == {orders, fetches}, "the followers' fetches")
        await stage.until(lambda: refusals(stage, 3).count(orders) > 10, "an order that is sent again and again")
        await stage.tasks.sleep(5_000_000)  # far more than followers may lag
        assert not has_role(stage, 3)
        assert await stage.state() == state

    ClusterStage((1, 2), of={3: OLD}, replica_lag_time_max_ms=1000).play(story)


def test_settings_that_cannot_be_had_at_once() -> None:
    def conflict(**settings: Any) -> str | None:
        return BrokerConfig(broker_id=1, **settings).conflict

    assert conflict() is None
    assert conflict(**OLD) is None
    assert conflict(**V1_1, lab_replication_rules=ReplicationRules.HIGH_WATERMARK) is None
    assert conflict(lab_release=Release.V1_1) == (
        "inter.broker.protocol.version=2.7: a broker with lab.release=1.1 knows 1.1; take one of these"
    )
    assert "no requests for lab.replication.rules=kip-320" in str(
        conflict(**V1_1, lab_replication_rules=ReplicationRules.KIP_320)
    )
    assert "no AlterPartition for lab.isr.writer=controller" in str(
        conflict(**V1_1, lab_isr_writer=IsrWriter.CONTROLLER)
    )


def test_every_release_serves_what_the_protocols_that_it_knows_ask() -> None:
    for release in Release:
        for protocol in release.protocols:
            for api in ApiKey:
                try:
                    version = protocol.version_of(api)
                except KeyError:
                    continue
                assert version in APIS[api].versions
                last = release.last_versions
                assert last is None or version <= last[api]


def test_before_version_3_replicas_that_are_deleted_are_stopped_by_a_request_of_their_own() -> None:
    states = tuple(
        StopReplicaTopicState(
            topic_name=topic,
            partition_states=(StopReplicaPartitionState(partition_index=0, leader_epoch=3, delete_partition=deletes),),
        )
        for topic, deletes in (("a", True), ("b", False), ("c", True))
    )
    request = StopReplicaRequest(controller_id=1, controller_epoch=2, broker_epoch=3, topic_states=states)
    found: list[Any] = list(ProtocolVersion.V1_1.messages(request))
    named = [[each.topic_name for each in message.ungrouped_partitions] for message in found]
    assert [message.delete_partitions for message in found] == [True, False]
    assert named == [["a", "c"], ["b"]]
    assert ProtocolVersion.V2_7.messages(request) == [request]


def test_a_request_that_stops_no_replica_is_sent_too() -> None:
    """KAFKA-8294."""
    request = StopReplicaRequest(controller_id=1, controller_epoch=2, broker_epoch=3, topic_states=())
    (found,) = list[Any](ProtocolVersion.V1_1.messages(request))
    assert (found.delete_partitions, found.ungrouped_partitions) == (False, ())


def test_answers_to_both_are_one() -> None:
    def answer(topic: str, error: E) -> StopReplicaResponse:
        failed = StopReplicaPartitionError(topic_name=topic, partition_index=0, error_code=error)
        return StopReplicaResponse(error_code=E.NONE, partition_errors=(failed,))

    found = merged([answer("b", E.NONE), answer("a", E.KAFKA_STORAGE_ERROR)])
    assert isinstance(found, StopReplicaResponse)
    assert [each.topic_name for each in found.partition_errors] == ["b", "a"]
    refused = StopReplicaResponse(error_code=E.STALE_CONTROLLER_EPOCH, partition_errors=())
    found = merged([refused, answer("a", E.NONE)])
    assert isinstance(found, StopReplicaResponse)
    assert found.error_code == E.STALE_CONTROLLER_EPOCH
