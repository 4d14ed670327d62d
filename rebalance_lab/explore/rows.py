"""Many rows of small numbers at once: what `Values` is to one value."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Of numbers of values, and of rows of them.
Numbers = NDArray[np.int32]
#: Of positions in an array.
Positions = NDArray[np.intp]

#: An odd number without a pattern (2**64 / golden ratio): it spreads a key over the upper bits of a product.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_FOLD = np.uint64(32)
_FREE = -1


class Grown:
    """An array that grows at its end. `of`: what it holds."""

    def __init__(self, width: int | None = None, dtype: Any = np.int32) -> None:
        self._room = np.empty((64,) if width is None else (64, width), dtype)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def of(self) -> NDArray[Any]:
        return self._room[: self._size]

    def extend(self, more: Any) -> None:
        size = self._size + len(more)
        if size > len(self._room):
            room = np.empty((size * 3 // 2, *self._room.shape[1:]), self._room.dtype)
            room[: self._size] = self.of
            self._room = room
        if len(more):
            self._room[self._size : size] = more
        self._size = size


class Rows:
    """Rows of `width` numbers of 32 bits, an even width, and the numbers of these rows in the order in which they were
    first met: a hash table with open addressing."""

    def __init__(self, width: int) -> None:
        self._keys = Grown(width // 2, np.uint64)
        self._bits = 8
        self._slots = self._free_slots()

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def of(self) -> Numbers:
        """All of them, by their numbers."""
        return self._keys.of.view(np.int32)

    def numbers(self, rows: Numbers) -> tuple[Numbers, Positions]:
        """The number of each row; and the positions of those that were new, in the order of their numbers."""
        keys = np.ascontiguousarray(rows).view(np.uint64)
        found, slots = self._look_up(keys)
        new = np.flatnonzero(found < 0)
        if not len(new):
            return found, new
        if 2 * (len(self) + len(new)) > len(self._slots):
            self._make_room(len(new))
            slots[new] = self._look_up(keys[new])[1]
        owners = self._claimed(keys, slots, new)
        firsts = new[owners == new]
        found[firsts] = np.arange(len(self), len(self) + len(firsts), dtype=np.int32)
        found[new] = found[owners]
        self._slots[slots[firsts]] = found[firsts]
        self._keys.extend(keys[firsts])
        return found, firsts

    def _look_up(self, keys: NDArray[np.uint64]) -> tuple[Numbers, Positions]:
        """The number of each key, or -1; and the slot where the search for it ended."""
        slots, known = self._first_slots(keys), self._keys.of
        found = self._slots[slots]
        waiting = np.flatnonzero(found >= 0)
        while len(waiting):
            waiting = waiting[~_same(known[found[waiting]], keys[waiting])]
            slots[waiting] = (slots[waiting] + 1) & (len(self._slots) - 1)
            found[waiting] = self._slots[slots[waiting]]
            waiting = waiting[found[waiting] >= 0]
        return found, slots

    def _claimed(self, keys: NDArray[np.uint64], slots: Positions, new: Positions) -> Positions:
        """Each of the new keys gets a slot, which is written to `slots`; equal ones get the same. Returns the first
        position of each."""
        owners, waiting = np.full(len(keys), -1, np.intp), new
        while len(waiting):
            free = waiting[self._slots[slots[waiting]] == _FREE][::-1]
            self._slots[slots[free]] = -2 - free  # the last of an assignment stays, so the first of the keys
            holders = -2 - self._slots[slots[waiting]].astype(np.intp)
            same = holders >= 0
            same[same] = _same(keys[holders[same]], keys[waiting[same]])
            owners[waiting[same]] = holders[same]
            waiting = waiting[~same]
            slots[waiting] = (slots[waiting] + 1) & (len(self._slots) - 1)
        return owners[new]

    def _make_room(self, more: int) -> None:
        while 2 * (len(self) + more) > 1 << self._bits:
            self._bits += 1
        self._slots = self._free_slots()
        for begin in range(0, len(self), 1 << 16):
            keys = self._keys.of[begin : begin + (1 << 16)]
            slots = self._look_up(keys)[1]
            self._claimed(keys, slots, np.arange(len(keys)))
            self._slots[slots] = np.arange(begin, begin + len(keys))

    def _free_slots(self) -> Numbers:
        return np.full(1 << self._bits, _FREE, np.int32)

    def _first_slots(self, keys: NDArray[np.uint64]) -> Positions:
        mixed = keys[:, 0] * _SPREAD
        for column in range(1, keys.shape[1]):
            mixed = ((mixed ^ (mixed >> _FOLD)) + keys[:, column]) * _SPREAD
        return (mixed >> np.uint64(64 - self._bits)).astype(np.intp)


def _same(one: NDArray[np.uint64], other: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which keys are equal. For few columns faster than `all`."""
    same: NDArray[np.bool_] = one[:, 0] == other[:, 0]
    for column in range(1, one.shape[1]):
        same &= one[:, column] == other[:, column]
    return same
