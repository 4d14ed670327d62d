"""Requests of producers, readers and controllers for one topic `t`, for tests of the broker."""

from __future__ import annotations

from typing import Any

from broker_stage import BrokerStage

from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.create_topics import CreatableTopic, CreateTopicsRequest
from rebalance_lab.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from rebalance_lab.wire.kafka.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from rebalance_lab.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rebalance_lab.wire.kafka.records import Record, batches, build_batch, records

E = ErrorCode


def batch(*values: str, at_ms: int = 1000, **producer: Any) -> bytes:
    return build_batch([Record(None, each.encode(), at_ms) for each in values], **producer)


async def create(stage: BrokerStage, partitions: int = 1, replication: int = 1) -> None:
    topic = CreatableTopic(
        name="t", num_partitions=partitions, replication_factor=replication, assignments=(), configs=()
    )
    created = await stage.ask(CreateTopicsRequest(topics=(topic,), timeout_ms=5000), 6)
    assert created.topics[0].error_code == E.NONE


def produce(data: bytes | None, *, partition: int = 0, acks: int = -1, timeout_ms: int = 1000) -> ProduceRequest:
    wanted = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=partition, records=data),))
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=(wanted,))


async def produced(stage: BrokerStage, data: bytes | None, version: int = 9, **more: Any) -> Any:
    """The answer for the one partition."""
    return (await stage.ask(produce(data, **more), version)).responses[0].partition_responses[0]


def fetch(
    *offsets: int,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    each_bytes: int = 1 << 20,
    **more: Any,
) -> FetchRequest:
    """The partitions 0, 1, … from these offsets on."""
    partitions = tuple(
        FetchPartition(partition=at, fetch_offset=offset, partition_max_bytes=each_bytes, **more)
        for at, offset in enumerate(offsets)
    )
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        topics=(FetchTopic(topic="t", partitions=partitions),),
    )


async def fetched(stage: BrokerStage, request: FetchRequest, version: int = 12) -> Any:
    """The answers for the partitions."""
    return (await stage.ask(request, version)).responses[0].partitions


def values(data: bytes) -> list[str]:
    return [(record.value or b"").decode() for at, _ in batches(data) for record in records(data, at)]


def leadership(
    leader: int, epoch: int, *, isr: tuple[int, ...] = (), controller_epoch: int = 1, broker_epoch: int = -1
) -> LeaderAndIsrRequest:
    """Partition t-0 with the replicas 1 and 2. `isr`: by default the leader alone."""
    state = LeaderAndIsrPartitionState(
        partition_index=0,
        controller_epoch=controller_epoch,
        leader=leader,
        leader_epoch=epoch,
        isr=isr or (leader,),
        partition_epoch=0,
        replicas=(1, 2),
    )
    return LeaderAndIsrRequest(
        controller_id=9,
        controller_epoch=controller_epoch,
        broker_epoch=broker_epoch,
        topic_states=(LeaderAndIsrTopicState(topic_name="t", partition_states=(state,)),),
        live_leaders=(LeaderAndIsrLiveLeader(broker_id=leader, host_name=f"host-b{leader}", port=9092),),
    )
