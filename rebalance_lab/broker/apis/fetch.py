"""Fetch: batches from the logs that this broker leads (`ReplicaManager.fetchMessages`).

It answers once `min_bytes` are there, `max_wait_ms` are over, or a partition has an error. Every request names all its
partitions: fetch sessions (KIP-227) are never begun, which a broker may do at any time, and one that a client asks for
is not found. Versions before 4 carry message sets of 0.8 to 0.10; versions from 13 on speak of topic ids.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.calls import Handler, Parts
from rebalance_lab.broker.log.epochs import UNDEFINED_EPOCH, EpochEnd
from rebalance_lab.broker.log.errors import LogError
from rebalance_lab.broker.log.results import Records, UpTo
from rebalance_lab.broker.partition import Partition
from rebalance_lab.broker.refused import Refused
from rebalance_lab.broker.replication.fetches import FetchAnswer
from rebalance_lab.kernel import Future
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from rebalance_lab.wire.kafka.schema import Versions
from rebalance_lab.wire.kafka.sentinels import CONSUMER, DEBUGGING_CONSUMER, NO_LEADER_EPOCH

NO_SESSION = 0
#: fetch.max.bytes: however much a client asks for.
MOST_BYTES = 55 * 1024 * 1024


async def handle(parts: Parts, call: Call) -> FetchResponse:
    request: FetchRequest = call.request
    if request.session_id != NO_SESSION:
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, responses=())
    deadline_us = parts.tasks.now_us() + max(request.max_wait_ms, 0) * 1000
    min_bytes = min(request.min_bytes, request.max_bytes)
    again = False
    while True:
        progress, before = _progress(parts, request), _positions(parts, request)
        found = await _read_all(parts, request, again=again)
        again = True
        if deadline_us <= parts.tasks.now_us() or _enough(found, min_bytes):
            return FetchResponse(responses=found)
        missing = min_bytes - _size(found)
        while deadline_us > parts.tasks.now_us() and not _may_suffice(before, _positions(parts, request), missing):
            await parts.tasks.first(parts.tasks.sleep(deadline_us - parts.tasks.now_us()), *progress)
            progress = _progress(parts, request)


def _progress(parts: Parts, request: FetchRequest) -> list[Future[None]]:
    """Taken before the partitions are read, so that nothing that comes meanwhile is missed."""
    found = []
    for topic in request.topics:
        for each in topic.partitions:
            try:
                found.append(parts.replicas.led(TopicPartition(topic.topic, each.partition)).progress)
            except Refused:
                continue
    return found


class _Position(NamedTuple):
    """`all_committed`: whether the high watermark was at the log's end, so that all that comes later is new."""

    leader_epoch: int
    bytes_written: int
    high_watermark: int
    all_committed: bool


def _positions(parts: Parts, request: FetchRequest) -> dict[TopicPartition, _Position]:
    """How much was written to each partition that can be read."""
    found = {}
    for topic in request.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.topic, each.partition)
            try:
                replica = parts.replicas.led(partition)
            except Refused:
                continue
            log = replica.log
            all_committed = log.high_watermark == log.end_offset
            found[partition] = _Position(replica.leader_epoch, log.bytes_written, log.high_watermark, all_committed)
    return found


def _may_suffice(before: dict[TopicPartition, _Position], now: dict[TopicPartition, _Position], missing: int) -> bool:
    """Whether another reading may find `missing` bytes more than the one at `before`, or an error."""
    if {each: known.leader_epoch for each, known in before.items()} != {
        each: known.leader_epoch for each, known in now.items()
    }:
        return True
    if not all(known.all_committed for known in before.values()):
        return before != now
    return sum(now[each].bytes_written - known.bytes_written for each, known in before.items()) >= missing


def _size(found: tuple[FetchableTopicResponse, ...]) -> int:
    return sum(len(each.records or b"") for topic in found for each in topic.partitions)


def _enough(found: tuple[FetchableTopicResponse, ...], min_bytes: int) -> bool:
    answers = [each for topic in found for each in topic.partitions]
    failed = any(each.error_code or each.diverging_epoch.epoch != UNDEFINED_EPOCH for each in answers)
    return failed or not answers or _size(found) >= min_bytes


async def _read_all(parts: Parts, request: FetchRequest, *, again: bool) -> tuple[FetchableTopicResponse, ...]:
    """All partitions in the order of the request, until the bytes are used up. The first that has any gives a whole
    batch, however large it is, so that every reader gets on. `again`: the request has been looked at before, so that
    the leader has taken note of what its follower has."""
    budget = min(request.max_bytes, MOST_BYTES)
    reader = _Reader(request.replica_id, again=again)
    nothing_yet = True
    topics = []
    for topic in request.topics:
        answers = []
        for each in topic.partitions:
            answer = await _read(
                parts, TopicPartition(topic.topic, each.partition), each, reader, budget, at_least_one=nothing_yet
            )
            size = len(answer.records or b"")
            nothing_yet = nothing_yet and size == 0
            budget = max(0, budget - size)
            answers.append(answer)
        topics.append(FetchableTopicResponse(topic=topic.topic, partitions=tuple(answers)))
    return tuple(topics)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Who fetches. `replica_id`: a follower's; negative for others. `again`: see `_read_all`."""

    replica_id: int
    again: bool

    @property
    def up_to(self) -> UpTo:
        return UpTo.HIGH_WATERMARK if self.replica_id == CONSUMER else UpTo.LOG_END

    def replica(self, parts: Parts, partition: TopicPartition, known_epoch: int) -> Partition:
        """The replica that it may read. Raises Refused, also for a follower that is not a replica of the partition
        (`followerReplicaOrThrow`)."""
        if self.replica_id == DEBUGGING_CONSUMER and partition in parts.replicas.all:
            return parts.replicas.all[partition]
        replica = parts.replicas.led(partition, known_epoch)
        if self.replica_id >= 0 and not replica.check_leader().is_follower(self.replica_id):
            code = (
                ErrorCode.NOT_LEADER_OR_FOLLOWER if known_epoch == NO_LEADER_EPOCH else ErrorCode.UNKNOWN_LEADER_EPOCH
            )
            raise Refused(code, f"broker {self.replica_id} is not a replica of {replica.partition}")
        return replica


async def _read(
    parts: Parts, partition: TopicPartition, asked: FetchPartition, reader: _Reader, budget: int, *, at_least_one: bool
) -> PartitionData:
    try:
        replica = reader.replica(parts, partition, asked.current_leader_epoch)
        log, offset = replica.log, asked.fetch_offset
        concluded = replica.conclude(offset, asked.last_fetched_epoch)
        if concluded.answer is FetchAnswer.OUT_OF_RANGE:
            why = f"there are [{log.start_offset}, {log.end_offset}), and epochs up to {log.leader_epoch}"
            raise Refused(ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is asked for: {why}")
        if concluded.answer is FetchAnswer.DIVERGING:
            found = Records(b"", log.start_offset, log.high_watermark, log.end_offset)
        else:
            most = min(budget, asked.partition_max_bytes)
            found = await log.read(offset, most, reader.up_to, at_least_one=at_least_one)
        if concluded.counts and reader.replica_id >= 0 and not reader.again:
            replica.follower_fetched(reader.replica_id, offset, found.log_end_offset)
        return _answer(asked, found, concluded.parted)
    except (Refused, LogError) as error:
        return PartitionData(
            partition_index=asked.partition,
            error_code=error.code,
            high_watermark=-1,
            aborted_transactions=None,
            records=b"",
        )


def _answer(asked: FetchPartition, found: Records, parted: EpochEnd | None) -> PartitionData:
    """`parted`: where the log that the reader has and this one part, if they do (KIP-320, KIP-595)."""
    diverging = EpochEndOffset() if parted is None else EpochEndOffset(epoch=parted.epoch, end_offset=parted.offset)
    return PartitionData(
        partition_index=asked.partition,
        error_code=ErrorCode.NONE,
        high_watermark=found.high_watermark,
        last_stable_offset=found.high_watermark,  # there are no transactions
        log_start_offset=found.log_start_offset,
        diverging_epoch=diverging,
        aborted_transactions=None,
        records=found.data,
    )


HANDLER = Handler(ApiKey.FETCH, Versions(4, 12), handle, abandoned=True)
