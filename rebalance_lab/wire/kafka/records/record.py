"""The records in a batch (`DefaultRecord` of Kafka 3.9.1)."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.records.batch import HEADER_BYTES, InvalidBatch, read_header
from rebalance_lab.wire.kafka.records.compression import MOST_DECOMPRESSED_BYTES, Undecompressable, decompress

#: The name and the value of a header.
Header = tuple[str, bytes | None]


class Record(msgspec.Struct, frozen=True, gc=False):
    """One record. `timestamp_ms` is -1 for none; `offset` is the log's, and of no meaning to who builds a batch."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int = -1
    headers: tuple[Header, ...] = ()
    offset: int = -1


def records(data: bytes, at: int = 0, *, most_bytes: int = MOST_DECOMPRESSED_BYTES) -> Iterator[Record]:
    """The records of the batch at `at`, one by one. The batch must have passed check_batch.

    Raises InvalidBatch where the records are not what the header says, as soon as that shows.
    """
    header = read_header(data, at)
    try:
        payload = decompress(header.compression, data[at + HEADER_BYTES : at + header.size], most_bytes)
    except Undecompressable as wrong:
        raise InvalidBatch(ErrorCode.CORRUPT_MESSAGE, f"records of a batch are {wrong}") from None
    position, base_offset = 0, header.base_offset
    append_ms, base_ms = header.max_timestamp_ms if header.log_append_time else None, header.base_timestamp_ms
    for n in range(header.count):
        try:
            offset_delta, delta_ms, key, value, headers, position = _read(payload, position)
        except (_Wrong, IndexError) as wrong:
            reason = "the bytes end here" if isinstance(wrong, IndexError) else wrong
            raise InvalidBatch(ErrorCode.INVALID_RECORD, f"record {n} of a batch: {reason}") from None
        timestamp_ms = base_ms + delta_ms if append_ms is None else append_ms
        yield Record(key, value, timestamp_ms, headers, base_offset + offset_delta)
    if position != len(payload):
        reason = f"{len(payload) - position} bytes follow the {header.count} records of a batch"
        raise InvalidBatch(ErrorCode.INVALID_RECORD, reason)


def check_records(data: bytes, at: int = 0, *, most_bytes: int = MOST_DECOMPRESSED_BYTES) -> int:
    """Read all records of a batch that a producer sent. Returns their largest timestamp, in ms; -1 if they have none.
    Raises InvalidBatch, also where offsets leave gaps."""
    expected, largest_ms = read_header(data, at).base_offset, -1
    for record in records(data, at, most_bytes=most_bytes):
        if record.offset != expected:
            reason = f"a record has the offset {record.offset}, {expected} was to come"
            raise InvalidBatch(ErrorCode.INVALID_RECORD, reason)
        expected += 1
        largest_ms = max(largest_ms, record.timestamp_ms)
    return largest_ms


class _Wrong(Exception):
    """Why a record cannot be read."""


#: Of the first byte of a varint: it goes on, or is negative.
_NOT_SHORT = 0x81


def _read(data: bytes, at: int) -> tuple[int, int, bytes | None, bytes | None, tuple[Header, ...], int]:
    """Returns (offset and time relative to those of the batch, key, value, headers, position after the record).

    Numbers below 64 are read in place: calls would take half of the time.
    """
    size, at = read_varint(data, at)
    end = at + size
    if size < 0 or end > len(data):
        raise _Wrong(f"a record of {size} bytes, {len(data) - at} are left")
    at += 1  # attributes, none of which is in use
    delta_ms = data[at]
    delta_ms, at = read_varint(data, at) if delta_ms & _NOT_SHORT else (delta_ms >> 1, at + 1)
    offset_delta = data[at]
    offset_delta, at = read_varint(data, at) if offset_delta & _NOT_SHORT else (offset_delta >> 1, at + 1)
    key, at = _piece(data, at, end)
    value, at = _piece(data, at, end)
    if data[at]:
        headers, at = _headers(data, at, end)
    else:
        headers, at = (), at + 1
    if at != end:
        raise _Wrong(f"a record that says it has {size} bytes has {size + at - end}")
    return offset_delta, delta_ms, key, value, headers, at


def _piece(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    """A key, a value, or a part of a header."""
    size = data[at]
    size, at = read_varint(data, at) if size & _NOT_SHORT else (size >> 1, at + 1)
    if size < 0:
        if size < -1:
            raise _Wrong(f"a length of {size}")
        return None, at
    after = at + size
    if after > end:
        raise _Wrong(f"{size} bytes announced, {end - at} left in the record")
    return data[at:after], after


def _headers(data: bytes, at: int, end: int) -> tuple[tuple[Header, ...], int]:
    count, at = read_varint(data, at)
    if not 0 <= count <= end - at:
        raise _Wrong(f"{count} headers announced, {end - at} bytes left in the record")
    found = []
    for _ in range(count):
        name, at = _piece(data, at, end)
        if name is None:
            raise _Wrong("a header without a name")
        value, at = _piece(data, at, end)
        found.append((name.decode("utf-8", "replace"), value))
    return tuple(found), at


_LAST_SHIFT = 63


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A signed varint in zigzag order, of at most 64 bits."""
    byte = data[at]
    at += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at
    number, shift = byte & 0x7F, 7
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
        if shift > _LAST_SHIFT:
            raise _Wrong("a varint of more than ten bytes")
