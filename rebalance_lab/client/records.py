"""Producing to a partition and reading from it, one request at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rebalance_lab.client.cluster import ClusterClient, RefusedByBroker
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from rebalance_lab.wire.kafka.messages.init_producer_id import InitProducerIdRequest
from rebalance_lab.wire.kafka.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from rebalance_lab.wire.kafka.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from rebalance_lab.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rebalance_lab.wire.kafka.records import (
    Compression,
    InvalidBatch,
    Record,
    batches,
    build_batch,
    check_batch,
    records,
)
from rebalance_lab.wire.kafka.sentinels import CONSUMER, DEBUGGING_CONSUMER, EARLIEST, LATEST, NO_LEADER_EPOCH

#: Who acknowledges a write: all replicas in sync, the leader alone, or nobody.
ACKS_ALL = -1
ACKS_LEADER = 1
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


#: Sequence numbers go from 0 to 2³¹ - 1, and begin again.
_SEQUENCES = 1 << 31

#: In an InitProducerId request without a transactional id, as Kafka's producer sends it.
_NO_TRANSACTION_TIMEOUT_MS = 2**31 - 1


class Fetched(NamedTuple):
    """`next_offset`: where to go on. `high_watermark`: the first offset that cannot be read yet."""

    records: tuple[Record, ...]
    next_offset: int
    high_watermark: int


class ReplicaRecord(NamedTuple):
    """A record as a log has it. `leader_epoch`: that of its batch."""

    offset: int
    leader_epoch: int
    value: bytes | None


class EpochEnd(NamedTuple):
    """Where a leader epoch ends in a log: at the offset before which its last record stands."""

    leader_epoch: int
    offset: int


@dataclass(slots=True)
class Producer:
    """An idempotent producer (KIP-98) of one partition: brokers recognize a batch that it repeats. `next_sequence`:
    that of the next record."""

    producer_id: int
    epoch: int
    next_sequence: int = 0

    def sequence_of(self, at: int) -> int:
        """That of the record at this place in the next batch."""
        return (self.next_sequence + at) % _SEQUENCES


_NOBODY = Producer(-1, -1, -1)


async def new_producer(cluster: ClusterClient) -> Producer:
    """A producer with an id of its own. Raises NoBroker, NotServed and RefusedByBroker."""
    asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TRANSACTION_TIMEOUT_MS)
    response = await cluster.ask_any(asked)
    if response.error_code:
        raise RefusedByBroker(response.error_code, "a producer id")
    return Producer(response.producer_id, response.producer_epoch)


async def produce(
    cluster: ClusterClient,
    topic: str,
    partition: int,
    new: Sequence[Record],
    *,
    acks: int = ACKS_ALL,
    compression: Compression = Compression.NONE,
    timeout_ms: int = 30_000,
    producer: Producer | None = None,
) -> int:
    """Write records as one batch. Returns the offset of the first; -1 with acks 0, which nobody answers.

    With a `producer` and acks -1 it may be repeated after any error: the records are written once. Raises NoBroker,
    NotServed and RefusedByBroker.
    """
    by = producer or _NOBODY
    batch = build_batch(
        new,
        compression=compression,
        producer_id=by.producer_id,
        producer_epoch=by.epoch,
        base_sequence=by.next_sequence,
    )
    data = PartitionProduceData(index=partition, records=batch)
    asked = ProduceRequest(
        acks=acks, timeout_ms=timeout_ms, topic_data=(TopicProduceData(name=topic, partition_data=(data,)),)
    )
    if acks == ACKS_NONE:
        await cluster.tell_leader(topic, partition, asked)
        return -1
    response = await cluster.ask_leader(topic, partition, asked)
    (result,) = response.responses[0].partition_responses
    _check(cluster, topic, partition, result.error_code, result.error_message)
    if producer is not None:
        producer.next_sequence = producer.sequence_of(len(new))
    return int(result.base_offset)


async def fetch(cluster: ClusterClient, topic: str, partition: int, offset: int, *, max_wait_ms: int = 500) -> Fetched:
    """What is committed from `offset` on, a megabyte at most, unless the first batch is larger. Raises NoBroker,
    NotServed, RefusedByBroker, and InvalidBatch for bytes that are no batch."""
    asked = _fetch_request(topic, {partition: offset}, max_wait_ms)
    response = await cluster.ask_leader(topic, partition, asked)
    (result,) = response.responses[0].partitions
    _check(cluster, topic, partition, result.error_code)
    return _fetched(result, offset)


async def read_committed(
    cluster: ClusterClient, topic: str, partition: int, *, beyond: int = -1
) -> list[Record] | None:
    """All that is committed in a partition now; None if the log does not reach beyond the offset `beyond` yet. Errors
    as of `fetch`."""
    offset = await offset_at(cluster, topic, partition, EARLIEST)
    end = await offset_at(cluster, topic, partition, LATEST)
    if end <= beyond:
        return None
    found: list[Record] = []
    while offset < end:
        fetched = await fetch(cluster, topic, partition, offset)
        found += fetched.records
        offset = fetched.next_offset
    return found


async def fetch_several(
    cluster: ClusterClient, node: int, topic: str, offsets: Mapping[int, int], *, max_wait_ms: int
) -> dict[int, Fetched | RefusedByBroker | InvalidBatch]:
    """What one broker has of several partitions that it leads, each from its offset on, as of `fetch`; or why it has
    not. Raises NoBroker and NotServed."""
    response = await cluster.ask_node(node, _fetch_request(topic, offsets, max_wait_ms))
    found: dict[int, Fetched | RefusedByBroker | InvalidBatch] = {}
    for result in response.responses[0].partitions:
        partition = result.partition_index
        try:
            _check(cluster, topic, partition, result.error_code)
            found[partition] = _fetched(result, offsets[partition])
        except (RefusedByBroker, InvalidBatch) as error:
            found[partition] = error
    return found


async def fetch_replica(
    cluster: ClusterClient, broker_id: int, topic: str, partition: int, offset: int
) -> tuple[ReplicaRecord, ...]:
    """What one broker's replica has from `offset` on, committed or not, whatever its role is; nothing at its end.
    Errors as of `fetch`."""
    asked = _fetch_request(topic, {partition: offset}, 0, replica_id=DEBUGGING_CONSUMER)
    response = await cluster.ask_node(broker_id, asked)
    (result,) = response.responses[0].partitions
    _check(cluster, topic, partition, result.error_code)
    return _with_epochs(result, offset)


async def fetch_committed(
    cluster: ClusterClient, topic: str, partition: int, offset: int, *, current_epoch: int, max_wait_ms: int
) -> tuple[ReplicaRecord, ...]:
    """What is committed from `offset` on, with the leader epochs, from a leader of the epoch `current_epoch`; another
    one refuses (KIP-320). NO_LEADER_EPOCH: from any, as before Kafka 2.1. Errors as of `fetch`."""
    asked = _fetch_request(topic, {partition: offset}, max_wait_ms, current_epoch=current_epoch)
    response = await cluster.ask_leader(topic, partition, asked)
    (result,) = response.responses[0].partitions
    _check(cluster, topic, partition, result.error_code)
    return _with_epochs(result, offset)


async def end_of_epoch(
    cluster: ClusterClient, topic: str, partition: int, leader_epoch: int, *, current_epoch: int
) -> EpochEnd | None:
    """Where the largest leader epoch up to `leader_epoch` ends in the log of the leader of `current_epoch`; None if it
    knows none. Errors as of `produce`."""
    wanted = OffsetForLeaderPartition(
        partition=partition, current_leader_epoch=current_epoch, leader_epoch=leader_epoch
    )
    asked = OffsetForLeaderEpochRequest(
        replica_id=CONSUMER, topics=(OffsetForLeaderTopic(topic=topic, partitions=(wanted,)),)
    )
    response = await cluster.ask_leader(topic, partition, asked)
    (result,) = response.topics[0].partitions
    _check(cluster, topic, partition, result.error_code)
    return None if min(result.leader_epoch, result.end_offset) < 0 else EpochEnd(result.leader_epoch, result.end_offset)


def _with_epochs(result: PartitionData, offset: int) -> tuple[ReplicaRecord, ...]:
    data = bytes(result.records or b"")
    return tuple(
        ReplicaRecord(each.offset, header.leader_epoch, each.value)
        for at, header in batches(data)
        for each in records(data, at)
        if each.offset >= offset
    )


def _fetch_request(
    topic: str,
    offsets: Mapping[int, int],
    max_wait_ms: int,
    *,
    replica_id: int = CONSUMER,
    current_epoch: int = NO_LEADER_EPOCH,
) -> FetchRequest:
    wanted = tuple(
        FetchPartition(
            partition=partition,
            current_leader_epoch=current_epoch,
            fetch_offset=offset,
            partition_max_bytes=_FETCH_BYTES,
        )
        for partition, offset in offsets.items()
    )
    return FetchRequest(
        replica_id=replica_id,
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=_FETCH_BYTES,
        topics=(FetchTopic(topic=topic, partitions=wanted),),
    )


def _fetched(result: PartitionData, offset: int) -> Fetched:
    data = bytes(result.records or b"")
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
