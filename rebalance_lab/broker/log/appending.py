"""What may be appended to a log (`UnifiedLog.analyzeAndValidateRecords`, `LogValidator`, Kafka 3.9.1)."""

from __future__ import annotations

from rebalance_lab.broker.log.config import LogConfig
from rebalance_lab.broker.log.errors import BatchRefused, UnexpectedOffset
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.records import (
    BatchHeader,
    InvalidBatch,
    batches,
    check_batch,
    check_produced,
    check_records,
)


def check_client_batch(data: bytes, config: LogConfig, partition: str) -> int:
    """Whether this is the one batch that a client may send. Returns the largest timestamp of its records, in ms. Raises
    BatchRefused."""
    if len(data) > config.max_message_bytes:
        raise BatchRefused(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"{partition}: a batch of {len(data)} bytes, and max.message.bytes is {config.max_message_bytes}",
        )
    try:
        header = check_produced(data)
        largest_ms = check_records(data)
    except InvalidBatch as error:
        raise BatchRefused(error.code, f"{partition}: {error}") from None
    if header.base_offset != 0:
        reason = f"{partition}: a producer's batch begins with offset {header.base_offset} instead of 0"
        raise BatchRefused(ErrorCode.INVALID_RECORD, reason)
    if header.transactional:
        reason = f"{partition}: the batch belongs to a transaction, and this broker serves none"
        raise BatchRefused(ErrorCode.INVALID_TXN_STATE, reason)
    if header.log_append_time:
        reason = f"{partition}: a producer's batch says that it has the time of its append"
        raise BatchRefused(ErrorCode.INVALID_TIMESTAMP, reason)
    _check_segment(len(data), config, partition)
    return largest_ms


def replica_batches(
    data: bytes, config: LogConfig, partition: str, end_offset: int, leader_epoch: int
) -> list[BatchHeader]:
    """The headers of what a follower was sent by its leader, up to the first batch of a later leader than that of
    `leader_epoch`, or to one that is cut off. Raises BatchRefused, and UnexpectedOffset if they do not continue a log
    that ends at `end_offset`."""
    accepted: list[BatchHeader] = []
    size = 0
    try:
        for at, header in batches(data):
            check_batch(data, at)
            if header.leader_epoch > leader_epoch:
                break
            if header.base_offset < end_offset or header.last_offset < header.base_offset:
                sent = f"offsets {header.base_offset} to {header.last_offset} were sent"
                raise UnexpectedOffset(f"{partition}: {sent}, and {end_offset} is the next one")
            end_offset = header.last_offset + 1
            size += header.size
            accepted.append(header)
    except InvalidBatch as error:
        raise BatchRefused(error.code, f"{partition}: {error}") from None
    _check_segment(size, config, partition)
    return accepted


def _check_segment(size: int, config: LogConfig, partition: str) -> None:
    if size > config.segment_bytes:
        raise BatchRefused(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"{partition}: {size} bytes at once, and segment.bytes is {config.segment_bytes}",
        )
