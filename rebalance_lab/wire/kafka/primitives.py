"""What the compiled codecs call: lengths, numbers and strings outside their short paths.

Readers take the bytes and a position, and return the value and the position after it. They raise Invalid, IndexError or
struct.error, of which `codec` makes one MalformedMessage.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

from rebalance_lab.wire.kafka.schema import NUMBERS

#: How many items the arrays of one message may hold together; short arrays of numbers do not count. It bounds what
#: hostile bytes become: about 40 MB of objects where items have few bytes, and else up to 15 times the frame.
MOST_ITEMS = 1 << 18

#: Arrays of at most as many numbers have a Struct ready.
SHORT = 16

_LARGEST_LENGTH = 0x7FFFFFFF
_LAST_SHIFT = 28


class Invalid(Exception):
    """Why a value cannot be read or written. Inside this package only."""


#: Kind -> the Structs that read 0, 1, … numbers.
NUMBERS_READERS = {
    kind: tuple(Struct(f">{n}{letter}").unpack_from for n in range(SHORT + 1)) for kind, letter in NUMBERS.items()
}
#: Kind -> the Structs that write 0, 1, … numbers.
NUMBERS_WRITERS = {
    kind: tuple(Struct(f">{n}{letter}").pack for n in range(SHORT + 1)) for kind, letter in NUMBERS.items()
}

_VARINTS = tuple(bytes((n,)) for n in range(0x80))


def uvarint(number: int) -> bytes:
    """An unsigned varint: seven bits a byte, the lowest first."""
    if number < len(_VARINTS):
        return _VARINTS[number]
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_uvarint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned varint of at most 31 bits."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > _LAST_SHIFT:
            raise Invalid("a varint of more than five bytes")
    if number > _LARGEST_LENGTH:
        raise Invalid(f"a varint of {number}, which is over 31 bits")
    return number, at


def odd_length(length: int, left: int) -> None:
    """Raise for the length of a string or of bytes that is negative, or larger than the bytes left."""
    if length == -1:
        raise Invalid("null, which this version does not allow")
    if length < 0:
        raise Invalid(f"a length of {length}")
    raise Invalid(f"{length} bytes announced, {left} left")


def check_items(count: int, smallest: int, left: int, budget: list[int]) -> None:
    """Raise unless `count` items of at least `smallest` bytes fit into the `left` bytes and the budget."""
    if count < 0:
        raise Invalid("null, which this version does not allow" if count == -1 else f"{count} items")
    if count * smallest > left:
        raise Invalid(f"{count} items announced, which take {count * smallest} bytes or more, {left} left")
    budget[0] -= count
    if budget[0] < 0:
        raise Invalid(f"more than {MOST_ITEMS} items in one message")


def read_numbers(data: bytes, at: int, count: int, letter: str, budget: list[int]) -> tuple[tuple[Any, ...], int]:
    """Numbers of one kind, as many as there may be."""
    layout = Struct(f">{letter}")
    check_items(count, layout.size, len(data) - at, budget)
    end = at + count * layout.size
    return Struct(f">{count}{letter}").unpack_from(data, at), end


def write_numbers(numbers: tuple[Any, ...], letter: str) -> bytes:
    """Numbers of one kind, as many as there may be."""
    return Struct(f">{len(numbers)}{letter}").pack(*numbers)


def check_uuid(value: bytes) -> None:
    """Raise unless it has 16 bytes, which `struct` does not ask."""
    if len(value) != 16:
        raise Invalid(f"{len(value)} bytes; a uuid has 16")
