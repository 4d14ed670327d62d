"""ListOffsets: the first offset, the next one, and those by time (`KafkaApis.handleListOffsetRequest`).

Version 0 asks for several offsets at once, which Kafka dropped; versions from 8 on speak of tiered storage.
"""

from __future__ import annotations

import msgspec

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.calls import Handler, Parts
from rebalance_lab.broker.log.epochs import UNDEFINED_EPOCH
from rebalance_lab.broker.log.errors import LogError
from rebalance_lab.broker.log.log import PartitionLog
from rebalance_lab.broker.log.results import FoundOffset, UpTo
from rebalance_lab.broker.refused import Refused
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from rebalance_lab.wire.kafka.schema import Versions
from rebalance_lab.wire.kafka.sentinels import CONSUMER, EARLIEST, LARGEST_TIMESTAMP, LATEST

#: In place of a time -> the first version that knows it. Other negative ones are not known.
_SPECIAL = {LATEST: 0, EARLIEST: 0, LARGEST_TIMESTAMP: 7}

#: The first version that knows OFFSET_NOT_AVAILABLE (KIP-207); before, it is LEADER_NOT_AVAILABLE.
_NOT_AVAILABLE_SINCE = 5

#: The first version that answers with leader epochs.
_EPOCHS_SINCE = 4


async def handle(parts: Parts, call: Call) -> ListOffsetsResponse:
    up_to = UpTo.HIGH_WATERMARK if call.request.replica_id == CONSUMER else UpTo.LOG_END
    topics = []
    for topic in call.request.topics:
        answers = [
            _for_version(
                await _answer(parts, TopicPartition(topic.name, each.partition_index), each, up_to, call.version),
                call.version,
            )
            for each in topic.partitions
        ]
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=tuple(answers)))
    return ListOffsetsResponse(topics=tuple(topics))


async def _answer(
    parts: Parts, partition: TopicPartition, asked: ListOffsetsPartition, up_to: UpTo, version: int
) -> ListOffsetsPartitionResponse:
    try:
        if asked.timestamp_ms < 0 and version < _SPECIAL.get(asked.timestamp_ms, version + 1):
            raise Refused(ErrorCode.UNSUPPORTED_VERSION, f"version {version} does not know time {asked.timestamp_ms}")
        found = await _found(parts, partition, asked, up_to, version)
    except (Refused, LogError) as error:
        return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=error.code)
    if found is None:
        return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=ErrorCode.NONE)
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        error_code=ErrorCode.NONE,
        timestamp_ms=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch,
    )


def _for_version(answer: ListOffsetsPartitionResponse, version: int) -> ListOffsetsPartitionResponse:
    return answer if version >= _EPOCHS_SINCE else msgspec.structs.replace(answer, leader_epoch=UNDEFINED_EPOCH)


async def _found(
    parts: Parts, partition: TopicPartition, asked: ListOffsetsPartition, up_to: UpTo, version: int
) -> FoundOffset | None:
    """None: no record is as late. Raises Refused and LogErrors."""
    replica = parts.replicas.led(partition, asked.current_leader_epoch)
    log, start_offset = replica.log, replica.check_leader().start_offset
    if asked.timestamp_ms == LATEST:
        _check_caught_up(log, start_offset, up_to, version)
        return log.latest(up_to)
    if asked.timestamp_ms == EARLIEST:
        return log.earliest()
    if asked.timestamp_ms == LARGEST_TIMESTAMP:
        found = await log.largest_timestamp(up_to)
    else:
        found = await log.first_since(asked.timestamp_ms, up_to)
    if found is None:
        _check_caught_up(log, start_offset, up_to, version)
    return found


def _check_caught_up(log: PartitionLog, start_offset: int, up_to: UpTo, version: int) -> None:
    """A new leader does not know yet how much its predecessor had committed: until it does, the end that it can name
    may lie before one that consumers know (KIP-207). Raises Refused."""
    if up_to is UpTo.HIGH_WATERMARK and log.high_watermark < start_offset:
        code = ErrorCode.LEADER_NOT_AVAILABLE
        if version >= _NOT_AVAILABLE_SINCE:
            code = ErrorCode.OFFSET_NOT_AVAILABLE
        raise Refused(code, f"the high watermark {log.high_watermark} has not reached {start_offset} yet")


HANDLER = Handler(ApiKey.LIST_OFFSETS, Versions(1, 7), handle)
