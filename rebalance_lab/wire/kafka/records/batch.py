"""The header of a record batch, and what can be checked without looking at the records
(`DefaultRecordBatch` and `LogValidator` of Kafka 3.9.1)."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct, error

import google_crc32c
import msgspec

from rebalance_lab.wire.errors import KafkaException
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.records.compression import Compression

MAGIC = 2
HEADER = Struct(">qiibIhiqqqhii")
HEADER_BYTES = HEADER.size

#: What of a header says where its batch ends: base offset, length, last offset delta.
_BOUNDS = Struct(">qi11xi")

#: A batch's length counts the bytes behind it, its checksum covers those behind that.
UNCOUNTED_BYTES = 12
CHECKED_FROM = 21

_BASE_OFFSET = Struct(">q")
_LEADER_EPOCH = Struct(">i")
_LEADER_EPOCH_AT = 12
_MAGIC_AT = 16
_ATTRIBUTES = Struct(">h")
_ATTRIBUTES_AT = 21
_TIMESTAMP = Struct(">q")
_MAX_TIMESTAMP_AT = 35
_CHECKSUM = Struct(">I")
_CHECKSUM_AT = 17

_COMPRESSION = 0x07
_LOG_APPEND_TIME = 0x08
_TRANSACTIONAL = 0x10
_CONTROL = 0x20

#: Sequence numbers go up to this and start again at 0.
LAST_SEQUENCE = 0x7FFFFFFF


class InvalidBatch(KafkaException):
    """Bytes that are no record batch, or one that must not be appended. `code` is what Kafka answers."""

    def __init__(self, code: ErrorCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class BatchHeader(msgspec.Struct, frozen=True, gc=False):
    """A header as it is written. Timestamps are milliseconds, -1 for none; `producer_id`, `producer_epoch`
    and `base_sequence` are -1 where the producer is not idempotent."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    checksum: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @property
    def size(self) -> int:
        """Of the whole batch, in bytes."""
        return self.length + UNCOUNTED_BYTES

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def has_producer_id(self) -> bool:
        """Whether its producer is idempotent. Kafka takes any negative id for none."""
        return self.producer_id >= 0

    @property
    def last_sequence(self) -> int:
        """-1 where the producer is not idempotent."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & LAST_SEQUENCE

    @property
    def compression(self) -> Compression:
        """Raises InvalidBatch for a number that stands for none."""
        return _compression(self.attributes & _COMPRESSION)

    @property
    def log_append_time(self) -> bool:
        """Whether all records have the time of the append, `max_timestamp_ms`, as theirs."""
        return bool(self.attributes & _LOG_APPEND_TIME)

    @property
    def transactional(self) -> bool:
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def control(self) -> bool:
        """Whether it holds a marker of transactions instead of records."""
        return bool(self.attributes & _CONTROL)


def _compression(number: int) -> Compression:
    try:
        return Compression(number)
    except ValueError:
        reason = f"compression {number} is not known"
        raise InvalidBatch(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, reason) from None


def read_header(data: bytes | bytearray | memoryview, at: int = 0) -> BatchHeader:
    """The header at `at`, nothing in it checked. Raises InvalidBatch where the bytes end before it does, or have the
    layout of an older magic."""
    if len(data) - at > _MAGIC_AT and data[at + _MAGIC_AT] < MAGIC:
        reason = f"a message set of magic {data[at + _MAGIC_AT]}; only record batches of magic {MAGIC} are supported"
        raise InvalidBatch(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, reason)
    try:
        return BatchHeader(*HEADER.unpack_from(data, at))
    except error:
        reason = f"{len(data) - at} bytes are left; the header of a batch has {HEADER_BYTES}"
        raise InvalidBatch(ErrorCode.CORRUPT_MESSAGE, reason) from None


def read_bounds(data: bytes, at: int) -> tuple[int, int]:
    """The size and the last offset of the batch whose header begins at `at`: those of `read_header`, in a third of its
    time. Raises InvalidBatch as it does."""
    if len(data) - at < HEADER_BYTES or data[at + _MAGIC_AT] < MAGIC:
        header = read_header(data, at)
        return header.size, header.last_offset
    base_offset, length, last_offset_delta = _BOUNDS.unpack_from(data, at)
    return length + UNCOUNTED_BYTES, base_offset + last_offset_delta


def batches(data: bytes) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each batch that is there in whole: a fetch may cut the last one short.

    Raises InvalidBatch for a length in which no batch fits.
    """
    at = 0
    while len(data) - at >= HEADER_BYTES:
        header = read_header(data, at)
        if header.length < HEADER_BYTES - UNCOUNTED_BYTES:
            raise InvalidBatch(ErrorCode.CORRUPT_MESSAGE, f"a batch at byte {at} has a length of {header.length}")
        if at + header.size > len(data):
            return
        yield at, header
        at += header.size


def check_batch(data: bytes, at: int = 0) -> BatchHeader:
    """The header of a batch that is whole and unharmed: magic, length and checksum. Raises InvalidBatch."""
    header = read_header(data, at)
    if header.magic != MAGIC:
        raise InvalidBatch(ErrorCode.CORRUPT_MESSAGE, f"magic {header.magic} is not known")
    if not HEADER_BYTES <= header.size <= len(data) - at:
        reason = f"a batch of {header.size} bytes, of which {len(data) - at} are there"
        raise InvalidBatch(ErrorCode.CORRUPT_MESSAGE, reason)
    found = google_crc32c.value(data[at + CHECKED_FROM : at + header.size])
    if found != header.checksum:
        reason = f"the checksum is {found:#010x}, the batch says {header.checksum:#010x}"
        raise InvalidBatch(ErrorCode.CORRUPT_MESSAGE, reason)
    return header


def check_produced(data: bytes) -> BatchHeader:
    """The header of what a producer sent: one batch that its header allows to append. Raises InvalidBatch.

    A log may hold batches that this refuses, because compaction leaves gaps. What the records themselves say is not
    looked at here (`check_records`).
    """
    header = check_batch(data)
    if header.size != len(data):
        raise InvalidBatch(ErrorCode.INVALID_RECORD, f"{len(data) - header.size} bytes follow the only batch")
    if not 0 < header.count == header.last_offset_delta + 1:
        reason = f"{header.count} records, and a last offset delta of {header.last_offset_delta}"
        raise InvalidBatch(ErrorCode.INVALID_RECORD, reason)
    if header.control:
        raise InvalidBatch(ErrorCode.INVALID_RECORD, "a control batch, which no producer may send")
    if header.has_producer_id and header.base_sequence < 0:
        reason = f"producer {header.producer_id} sends the sequence number {header.base_sequence}"
        raise InvalidBatch(ErrorCode.INVALID_RECORD, reason)
    _compression(header.attributes & _COMPRESSION)
    return header


def place(batch: bytearray, at: int, *, base_offset: int, leader_epoch: int) -> None:
    """Give the batch at `at` its place in a log. Its checksum does not cover this, and stays right."""
    _BASE_OFFSET.pack_into(batch, at, base_offset)
    _LEADER_EPOCH.pack_into(batch, at + _LEADER_EPOCH_AT, leader_epoch)


def stamp(batch: bytearray, at: int, *, append_time_ms: int) -> None:
    """Give all records of the batch at `at` the time of their append, and the batch the checksum that goes with it."""
    header = read_header(batch, at)
    _ATTRIBUTES.pack_into(batch, at + _ATTRIBUTES_AT, header.attributes | _LOG_APPEND_TIME)
    set_max_timestamp(batch, at, append_time_ms)


def set_max_timestamp(batch: bytearray, at: int, timestamp_ms: int) -> None:
    """Let the header of the batch at `at` name this largest timestamp, and give it the checksum that goes with it."""
    header = read_header(batch, at)
    _TIMESTAMP.pack_into(batch, at + _MAX_TIMESTAMP_AT, timestamp_ms)
    checksum = google_crc32c.value(bytes(batch[at + CHECKED_FROM : at + header.size]))
    _CHECKSUM.pack_into(batch, at + _CHECKSUM_AT, checksum)
