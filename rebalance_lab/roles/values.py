"""The values that clients write: numbered, and such that damage shows.

A value is its number, a space, and filler that follows from the number and the value's size. So each byte of it is
known to whoever knows these two, and a value that was altered, cut off or joined to another is no value of any number.
"""

from __future__ import annotations

import hashlib

from rebalance_lab.wire.kafka.records import Record

#: The smallest size of a value; smaller ones could be a number alone, which shows no damage.
LEAST_BYTES = 8

#: So many bytes of a value that nobody wrote are told.
_SHOWN_BYTES = 40


def value_of(number: int, size: int) -> bytes:
    """The value with this number: `size` bytes, or as many as it needs."""
    text = f"{number} ".encode()
    filler = hashlib.shake_128(f"{number} in {size} bytes".encode()).hexdigest((size + 1) // 2)
    return (text + filler.encode())[: max(size, len(text))]


def told(value: bytes | None) -> int | str:
    """The number whose value this is; for any other value what it is, in words that differ for different values."""
    if value is None:
        return "no value"
    first = value.split(b" ", 1)[0]
    if len(value) >= LEAST_BYTES and first.isdigit() and value == value_of(int(first), len(value)):
        return int(first)
    shown = value[:_SHOWN_BYTES].decode("ascii", "backslashreplace")
    return f"{shown!r}, {len(value)} bytes, SHAKE128 {hashlib.shake_128(value).hexdigest(8)}"


def told_of(record: Record) -> int | str:
    """The same for a whole record. Clients write neither keys nor headers."""
    if record.key is not None or record.headers:
        return f"key {record.key!r} and headers {record.headers!r} with {told(record.value)}"
    return told(record.value)
