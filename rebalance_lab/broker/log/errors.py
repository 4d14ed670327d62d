"""What a log refuses. Errors that a client is told of carry Kafka's code; their messages name the partition."""

from __future__ import annotations

from rebalance_lab.wire.kafka.error_codes import ErrorCode


class LogError(Exception):
    """`code`: what the answer to a request says."""

    code = ErrorCode.UNKNOWN_SERVER_ERROR


class BatchRefused(LogError):
    """Bytes that are no batch, or a batch that may not be appended."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class OffsetOutOfRange(LogError):
    """Nothing can be read or deleted there."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE


class OutOfOrderSequence(LogError):
    """A producer's batch does not follow the one that was written last."""

    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class InvalidProducerEpoch(LogError):
    """A producer with a larger epoch has taken over the producer id."""

    code = ErrorCode.INVALID_PRODUCER_EPOCH


class UnexpectedOffset(LogError):
    """A leader's batches do not continue this follower's log."""


class LogFailed(LogError):
    """The disk is full, or has failed. The message says what to do."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class UnreadableLog(LogError):
    """A partition's folder, or a place in one of its files, that cannot be read. Nothing was changed."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class FolderFailed(Exception):
    """Nothing more can be written to the data folder, for example because its disk is full. The message says where it
    was found, and why."""


class WrongFolder(Exception):
    """The data folder belongs to another cluster or broker."""
