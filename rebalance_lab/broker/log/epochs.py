"""Which leader epoch wrote which offsets (`LeaderEpochFileCache`, Kafka 3.9.1; KIP-101, KIP-279)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

#: No epoch, and no offset.
UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class EpochStart(NamedTuple):
    """`offset`: the first one that the leader of `epoch` wrote, or would have written."""

    epoch: int
    offset: int


class EpochEnd(NamedTuple):
    """`offset`: the first one after those that leaders up to `epoch` wrote."""

    epoch: int
    offset: int


class LeaderEpochs:
    """Epochs and the offsets at which they start; both increase. Changing methods return whether anything changed."""

    def __init__(self, entries: Iterable[EpochStart] = ()) -> None:
        self._entries: list[EpochStart] = []
        for each in entries:
            self.assign(*each)

    @property
    def entries(self) -> tuple[EpochStart, ...]:
        return tuple(self._entries)

    @property
    def latest(self) -> int:
        return self._entries[-1].epoch if self._entries else UNDEFINED_EPOCH

    def assign(self, epoch: int, offset: int) -> bool:
        """`epoch` starts at `offset`, unless it is the latest one and has started earlier. Entries that contradict
        the new one go. Raises ValueError for a negative number."""
        if epoch < 0 or offset < 0:
            raise ValueError(f"leader epoch {epoch} cannot start at offset {offset}")
        if self._entries and self._entries[-1].epoch == epoch and self._entries[-1].offset <= offset:
            return False
        while self._entries and (self._entries[-1].epoch >= epoch or self._entries[-1].offset >= offset):
            self._entries.pop()
        self._entries.append(EpochStart(epoch, offset))
        return True

    def truncate_from_end(self, end_offset: int) -> bool:
        """The log ends at `end_offset`: epochs that start there or later have written nothing."""
        before = len(self._entries)
        while self._entries and self._entries[-1].offset >= end_offset:
            self._entries.pop()
        return len(self._entries) < before

    def truncate_from_start(self, start_offset: int) -> bool:
        """The log starts at `start_offset`: so does the epoch that wrote it, and earlier ones are gone."""
        gone = bisect_right(self._entries, start_offset, key=lambda each: each.offset)
        if gone == 0 or (gone == 1 and self._entries[0].offset == start_offset):
            return False
        self._entries[:gone] = [EpochStart(self._entries[gone - 1].epoch, start_offset)]
        return True

    def clear(self) -> bool:
        return self.truncate_from_end(0)

    def at(self, offset: int) -> int:
        """The epoch that wrote `offset`; UNDEFINED_EPOCH before the first."""
        number = bisect_right(self._entries, offset, key=lambda each: each.offset)
        return self._entries[number - 1].epoch if number else UNDEFINED_EPOCH

    def end_of(self, epoch: int, log_end_offset: int, *, before_first: bool = True) -> EpochEnd:
        """The answer to OffsetForLeaderEpoch: the largest epoch that is not larger than `epoch`, and its end. Both
        undefined if `epoch` is, or is larger than any that is known. If it is before the first, it ends where that
        starts; without `before_first`, it is undefined, too (up to 2.0.0)."""
        if epoch == UNDEFINED_EPOCH or epoch > self.latest:
            return EpochEnd(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
        if epoch == self.latest:
            return EpochEnd(epoch, log_end_offset)
        number = bisect_right(self._entries, epoch, key=lambda each: each.epoch)
        if number == 0 and not before_first:
            return EpochEnd(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
        found = self._entries[number - 1].epoch if number else epoch
        return EpochEnd(found, self._entries[number].offset)
