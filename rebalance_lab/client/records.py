"""Producing to a partition and reading from it, one request at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rebalance_lab.client.cluster import ClusterClient, RefusedByBroker
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from rebalance_lab.wire.kafka.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from rebalance_lab.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rebalance_lab.wire.kafka.records import Compression, Record, batches, build_batch, check_batch, records

LATEST, EARLIEST = -1, -2

ACKS_NONE = 0

#: The leader may have changed since the metadata was read.
MOVED = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)

_FETCH_BYTES = 1 << 20


class Fetched(NamedTuple):
    """`next_offset`: where to go on. `high_watermark`: the first offset that cannot be read yet."""

    records: tuple[Record, ...]
    next_offset: int
    high_watermark: int


async def produce(
    cluster: ClusterClient,
    topic: str,
    partition: int,
    new: Sequence[Record],
    *,
    acks: int = -1,
    compression: Compression = Compression.NONE,
    timeout_ms: int = 30_000,
) -> int:
    """Write records as one batch. Returns the offset of the first; -1 with acks 0, which nobody answers. Raises
    NoBroker, NotServed and RefusedByBroker."""
    data = PartitionProduceData(index=partition, records=build_batch(new, compression=compression))
    asked = ProduceRequest(
        acks=acks, timeout_ms=timeout_ms, topic_data=(TopicProduceData(name=topic, partition_data=(data,)),)
    )
    if acks == ACKS_NONE:
        await cluster.tell_leader(topic, partition, asked)
        return -1
    response = await cluster.ask_leader(topic, partition, asked)
    (result,) = response.responses[0].partition_responses
    _check(cluster, topic, partition, result.error_code, result.error_message)
    return int(result.base_offset)


async def fetch(cluster: ClusterClient, topic: str, partition: int, offset: int, *, max_wait_ms: int = 500) -> Fetched:
    """What is committed from `offset` on, a megabyte at most, unless the first batch is larger. Raises NoBroker,
    NotServed, RefusedByBroker, and InvalidBatch for bytes that are no batch."""
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=_FETCH_BYTES)
    asked = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=_FETCH_BYTES,
        topics=(FetchTopic(topic=topic, partitions=(wanted,)),),
    )
    response = await cluster.ask_leader(topic, partition, asked)
    (result,) = response.responses[0].partitions
    _check(cluster, topic, partition, result.error_code)
    data = result.records or b""
    found: list[Record] = []
    next_offset = offset
    for at, header in batches(data):
        check_batch(data, at)
        next_offset = header.last_offset + 1
        if not header.control:
            found += (record for record in records(data, at) if record.offset >= offset)
    return Fetched(tuple(found), next_offset, result.high_watermark)


async def offset_at(cluster: ClusterClient, topic: str, partition: int, timestamp_ms: int) -> int:
    """The first offset at or after a time, or EARLIEST or LATEST; -1 if no record is as late. Errors as of
    `produce`."""
    wanted = ListOffsetsPartition(partition_index=partition, timestamp_ms=timestamp_ms)
    asked = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=(wanted,)),))
    response = await cluster.ask_leader(topic, partition, asked)
    (result,) = response.topics[0].partitions
    _check(cluster, topic, partition, result.error_code)
    return int(result.offset)


def _check(cluster: ClusterClient, topic: str, partition: int, code: int, message: str | None = None) -> None:
    """Raises RefusedByBroker."""
    if not code:
        return
    if code in MOVED:
        cluster.forget_leader(topic, partition)
    raise RefusedByBroker(code, f"partition {topic}-{partition}", message)
