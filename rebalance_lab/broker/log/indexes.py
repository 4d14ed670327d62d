"""The sparse indexes of a segment (`OffsetIndex`, `TimeIndex`, Kafka 3.9.1), as they are in memory.

Their bytes are those of Kafka's files.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise
from struct import Struct
from typing import Any, ClassVar

#: The time of a batch that has none.
NO_TIMESTAMP = -1


class _Index:
    """Entries of a fixed size, which grow from one to the next. `LAYOUT`: of one entry.

    `written`: the file holds this many bytes of `data`. `stale`: it may hold other bytes after them, or not exist.
    """

    LAYOUT: ClassVar[Struct]

    def __init__(self, base_offset: int, data: bytes | None = None) -> None:
        """`data`: of the file; None for an index that is built anew."""
        self.base_offset = base_offset
        self.data = bytearray(data or b"")
        self.written = len(self.data)
        self.stale = data is None

    def __len__(self) -> int:
        return len(self.data) // self.LAYOUT.size

    @property
    def unwritten(self) -> bool:
        """Whether the file is not as the index is."""
        return self.stale or self.written < len(self.data)

    def _entry(self, number: int) -> tuple[int, ...]:
        return self.LAYOUT.unpack_from(self.data, number * self.LAYOUT.size)

    def _keep(self, entries: int) -> None:
        if entries < len(self):
            del self.data[entries * self.LAYOUT.size :]
            if self.written > len(self.data):
                self.written, self.stale = len(self.data), True

    def _entries(self) -> Iterator[tuple[Any, ...]]:
        return self.LAYOUT.iter_unpack(self.data)

    def _odd_bytes(self) -> int:
        return len(self.data) % self.LAYOUT.size


class OffsetIndex(_Index):
    """An entry: the last offset of a batch, relative to the segment's base offset, and the batch's position; int32."""

    LAYOUT = Struct(">ii")

    def full(self, max_bytes: int) -> bool:
        """Whether a file of `max_bytes` holds no further entry."""
        return len(self) >= max_bytes // self.LAYOUT.size

    def add(self, offset: int, position: int) -> None:
        self.data += self.LAYOUT.pack(offset - self.base_offset, position)

    @property
    def last_position(self) -> int:
        """The position in the last entry; 0 if there is none."""
        return self._entry(len(self) - 1)[1] if self.data else 0

    def around(self, offset: int) -> tuple[int, int | None]:
        """Where to look for `offset`: the batch that holds it begins at or after the first position. It begins at or
        before the second, which is None after the last entry."""
        slot = bisect_right(range(len(self)), offset - self.base_offset, key=self._relative_offset)
        before = self._entry(slot - 1)[1] if slot else 0
        return before, self._entry(slot)[1] if slot < len(self) else None

    def truncate_to(self, offset: int) -> None:
        """Drop the entries of `offset` and of what follows it."""
        self._keep(bisect_left(range(len(self)), offset - self.base_offset, key=self._relative_offset))

    def problem(self, log_bytes: int) -> str | None:
        """What is wrong with entries that were read from a file, for a segment of `log_bytes`; None: nothing."""
        if odd := self._odd_bytes():
            return f"{odd} bytes follow its last entry"
        if len(self) and (self._entry(0)[0] < 0 or self._entry(0)[1] < 0):
            return "its first entry is negative"
        if not all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(self._entries())):
            return "its entries do not increase"
        if len(self) and self.last_position >= log_bytes:
            return f"its last entry leads to byte {self.last_position} of {log_bytes}"
        return None

    def _relative_offset(self, number: int) -> int:
        return self._entry(number)[0]


class TimeIndex(_Index):
    """An entry: the largest timestamp so far, an int64, and the last offset of its batch, relative, an int32."""

    LAYOUT = Struct(">qi")

    def full(self, max_bytes: int) -> bool:
        """Whether a file of `max_bytes` holds no further entry. One place is kept for the entry of a roll."""
        return len(self) >= max_bytes // self.LAYOUT.size - 1

    def add(self, timestamp: int, offset: int) -> None:
        """Nothing happens if the last entry has this timestamp already, or a larger one."""
        if timestamp > self.last[0]:
            self.data += self.LAYOUT.pack(timestamp, offset - self.base_offset)

    @property
    def last(self) -> tuple[int, int]:
        """The last entry's timestamp and offset; NO_TIMESTAMP and the base offset if there is none."""
        if not self.data:
            return NO_TIMESTAMP, self.base_offset
        timestamp, relative = self._entry(len(self) - 1)
        return timestamp, self.base_offset + relative

    def lookup(self, timestamp: int) -> int:
        """The offset of the last entry whose timestamp is not larger; the base offset if there is none."""
        slot = bisect_right(range(len(self)), timestamp, key=lambda number: self._entry(number)[0])
        return self.base_offset + (self._entry(slot - 1)[1] if slot else 0)

    def truncate_to(self, offset: int) -> None:
        """Drop the entries of `offset` and of what follows it."""
        relative = offset - self.base_offset
        self._keep(bisect_left(range(len(self)), relative, key=lambda number: self._entry(number)[1]))

    def problem(self) -> str | None:
        """What is wrong with entries that were read from a file; None: nothing."""
        if odd := self._odd_bytes():
            return f"{odd} bytes follow its last entry"
        if len(self) and min(self._entry(0)) < 0:
            return "its first entry is negative"
        if not all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(self._entries())):
            return "its entries do not increase"
        return None
