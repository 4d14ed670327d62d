"""Building a batch, as a producer does."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

import google_crc32c

from rebalance_lab.wire.kafka.primitives import uvarint
from rebalance_lab.wire.kafka.records.batch import HEADER_BYTES, MAGIC, UNCOUNTED_BYTES
from rebalance_lab.wire.kafka.records.compression import Compression, compress
from rebalance_lab.wire.kafka.records.record import Record

_CHECKED = Struct(">hiqqqhii")
_UNCHECKED = Struct(">qiibI")


def build_batch(
    records: Sequence[Record],
    *,
    compression: Compression = Compression.NONE,
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """A batch of at least one record, with offsets from `base_offset` on."""
    if not records:
        raise ValueError("a batch has at least one record")
    first_ms = records[0].timestamp_ms
    pieces = [_record(record, n, first_ms) for n, record in enumerate(records)]
    payload = compress(compression, b"".join(pieces))
    last = len(records) - 1
    most_ms = max(record.timestamp_ms for record in records)
    ids = (producer_id, producer_epoch, base_sequence)
    checked = _CHECKED.pack(compression, last, first_ms, most_ms, *ids, len(records)) + payload
    size = HEADER_BYTES + len(payload)
    head = _UNCHECKED.pack(base_offset, size - UNCOUNTED_BYTES, leader_epoch, MAGIC, google_crc32c.value(checked))
    return head + checked


def _record(record: Record, n: int, first_ms: int) -> bytes:
    pieces = [b"\x00", varint(record.timestamp_ms - first_ms), varint(n)]
    for piece in (record.key, record.value):
        pieces += (b"\x01",) if piece is None else (varint(len(piece)), piece)
    pieces.append(varint(len(record.headers)))
    for name, value in record.headers:
        text = name.encode()
        pieces += (varint(len(text)), text)
        pieces += (b"\x01",) if value is None else (varint(len(value)), value)
    body = b"".join(pieces)
    return varint(len(body)) + body


def varint(number: int) -> bytes:
    """A signed varint in zigzag order."""
    return uvarint(number << 1 if number >= 0 else (-number << 1) - 1)
