"""One segment: a file of batches, and the two indexes into it (`LogSegment`, Kafka 3.9.1).

The indexes are complete in memory. Their files are written when the segment is flushed: one that was not is recovered
after a crash, and its indexes with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rebalance_lab.broker.log.batches import BatchReader, FoundBatch
from rebalance_lab.broker.log.config import LogConfig
from rebalance_lab.broker.log.errors import UnreadableLog
from rebalance_lab.broker.log.files import read_file
from rebalance_lab.broker.log.indexes import NO_TIMESTAMP, OffsetIndex, TimeIndex
from rebalance_lab.broker.log.names import OFFSET_INDEX, TIME_INDEX, segment_file
from rebalance_lab.kernel import Kernel
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.records import HEADER_BYTES, BatchHeader, InvalidBatch, check_batch, read_bounds
from rebalance_lab.world.storage import File, Storage

#: Offsets are at most this far from the segment's base offset: indexes hold them as int32.
MAX_RELATIVE_OFFSET = 2**31 - 1


class TimestampOffset(NamedTuple):
    """`offset`: the last one of the batch that has the timestamp."""

    timestamp: int
    offset: int


class Segment:
    """`size`: its bytes, with all appends that are done. `next_offset`: the one after its last batch, its base offset
    without any; known once it is loaded. The log allows one writer at a time."""

    def __init__(
        self,
        tasks: Kernel,
        storage: Storage,
        folder: str,
        base_offset: int,
        file: File,
        *,
        index_interval_bytes: int,
        created_ms: int,
    ) -> None:
        self.base_offset = base_offset
        self.file = file
        self.size = file.size
        self.index_interval_bytes = index_interval_bytes
        self.created_ms = created_ms
        self._storage = storage
        self._stem = f"{folder}/{segment_file(base_offset, '')}"
        self._loading = tasks.lock(f"indexes of {self._stem}")
        self._offsets = OffsetIndex(base_offset)
        self._times = TimeIndex(base_offset)
        self._loaded = self.size == 0
        self.next_offset = base_offset
        #: Of its first batch; None without one.
        self._first_timestamp_ms: int | None = None
        self._largest = TimestampOffset(NO_TIMESTAMP, base_offset)
        self._bytes_since_entry = 0

    def __repr__(self) -> str:
        return f"<Segment {self._stem} of {self.size} bytes>"

    # -- writing -----------------------------------------------------------------------------

    async def append(self, data: bytes, headers: list[BatchHeader]) -> None:
        """Write batches at the end. After an error the segment is as it was."""
        position = await self.file.append(data)
        assert position == self.size, f"{self._stem} has {position} bytes, not {self.size}"
        for header in headers:
            self._index(position, header)
            position += header.size
        self.size = position

    def _index(self, position: int, header: BatchHeader) -> None:
        """Take note of a batch that stands at `position`, after all others."""
        if self._first_timestamp_ms is None:
            self._first_timestamp_ms = header.max_timestamp_ms
        self._note(header)
        if self._bytes_since_entry > self.index_interval_bytes:
            self._offsets.add(header.last_offset, position)
            self._times.add(*self._largest)
            self._bytes_since_entry = 0
        self._bytes_since_entry += header.size

    def _note(self, header: BatchHeader) -> None:
        self.next_offset = header.last_offset + 1
        if header.max_timestamp_ms > self._largest.timestamp:
            self._largest = TimestampOffset(header.max_timestamp_ms, header.last_offset)

    def should_roll(self, config: LogConfig, size: int, last_offset: int, timestamp: int, now_ms: int) -> bool:
        """Whether batches of `size` bytes, with this last offset and largest timestamp, belong into a new segment."""
        if last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
            return True
        if self.size == 0:
            return False
        first = self._first_timestamp_ms
        age_ms = timestamp - first if first is not None and first >= 0 else now_ms - self.created_ms
        return (
            self.size > config.segment_bytes - size
            or age_ms > config.segment_ms
            or self._offsets.full(config.segment_index_bytes)
            or self._times.full(config.segment_index_bytes)
        )

    def seal(self) -> None:
        """Nothing more is appended: the time index ends with the largest timestamp."""
        self._times.add(*self._largest)

    @property
    def unwritten(self) -> bool:
        """Whether its indexes have entries that are in no file."""
        return self._loaded and (self._offsets.unwritten or self._times.unwritten)

    async def flush(self) -> None:
        """Make the segment and its indexes durable, as far as they are written when it begins."""
        if self._loaded:
            await self._write_index(self._offsets, OFFSET_INDEX)
            await self._write_index(self._times, TIME_INDEX)
        await self.file.sync()

    async def truncate_to(self, offset: int, now_ms: int) -> None:
        """Drop the batch that holds `offset`, and all that follow it. No loss of power brings them back."""
        await self.load()
        position = await self.position_of(offset)
        self._offsets.truncate_to(offset)
        self._times.truncate_to(offset)
        await self.file.truncate(position)
        await self.file.sync()
        self.size = position
        if not position:
            self.created_ms = now_ms
        await self._read_ends()

    async def recover(self, visit: Callable[[FoundBatch], None]) -> int:
        """Read the segment from its beginning, cut it after its last valid batch and build its indexes anew. `visit`
        sees each batch that stays. Returns the number of bytes that were cut off. What stays is durable: a truncation
        that a crash interrupted could be undone by a loss of power otherwise, and what was appended since with it."""
        valid = await self._build(self._continues, visit)
        cut, self.size = self.size - valid, valid
        if cut:
            await self.file.truncate(valid)
        await self.file.sync()
        self._loaded = True
        return cut

    async def close(self) -> None:
        await self.file.close()

    def _continues(self, found: FoundBatch) -> bool:
        """Whether a batch that was found after a crash is whole, and stands where it belongs."""
        try:
            header = check_batch(found.data, found.at)
        except InvalidBatch:
            return False
        return self.next_offset <= header.base_offset <= header.last_offset <= self.base_offset + MAX_RELATIVE_OFFSET

    async def _write_index(self, index: OffsetIndex | TimeIndex, suffix: str) -> None:
        if not index.unwritten:
            return
        pending = bytes(index.data[index.written :])
        file = await self._storage.open(self._stem + suffix, create=True)
        try:
            if index.stale and file.size > index.written:
                await file.truncate(index.written)
            if pending:
                await file.append(pending)
            await file.sync()
        finally:
            await file.close()
        index.written += len(pending)
        index.stale = False

    # -- reading -----------------------------------------------------------------------------

    @property
    def largest(self) -> TimestampOffset:
        """Its largest timestamp; NO_TIMESTAMP without one. Known once it is loaded."""
        return self._largest

    async def read(self, offset: int, max_bytes: int, end_offset: int, *, at_least_one: bool) -> bytes | None:
        """Whole batches, of `max_bytes` at most, from the one that holds `offset` on, with offsets below `end_offset`.
        `at_least_one`: the first may be larger than `max_bytes`. None: all batches of the segment are before
        `offset`."""
        end = self.size
        await self.load()
        low, high = self._offsets.around(offset)
        until = min(end, (end if high is None else high) + max(max_bytes, HEADER_BYTES))
        data = await self.file.pread(low, max(0, until - low))
        start, stop, first = _select(data, offset, max_bytes, end_offset)
        if start is None:
            return None
        if start == stop and at_least_one:
            return await self.file.pread(low + start, first)
        return data[start:stop]

    async def position_of(self, offset: int) -> int:
        """Where the batch begins that holds `offset`, or the first one after it; the end, if there is none."""
        await self.load()
        reader = BatchReader(self.file, self._offsets.around(offset)[0], self.size)
        while (found := await reader.next()) is not None:
            if found.header.last_offset >= offset:
                return found.position
        return self.size

    async def reader(self, offset: int) -> BatchReader:
        """Reads batches from somewhere before the one that holds `offset`."""
        await self.load()
        return BatchReader(self.file, self._offsets.around(offset)[0], self.size)

    async def reader_by_time(self, timestamp: int, offset: int) -> BatchReader:
        """Reads batches from somewhere before the first that has a timestamp as large, from `offset` on."""
        await self.load()
        return await self.reader(max(offset, self._times.lookup(timestamp)))

    # -- loading -----------------------------------------------------------------------------

    async def load(self) -> None:
        """Read the indexes from their files, or build those anew that are missing or wrong. Raises UnreadableLog."""
        if self._loaded:
            return
        async with self._loading:
            if self._loaded:
                return
            offsets = OffsetIndex(self.base_offset, await read_file(self._storage, self._stem + OFFSET_INDEX))
            times = TimeIndex(self.base_offset, await read_file(self._storage, self._stem + TIME_INDEX))
            if offsets.stale or times.stale or offsets.problem(self.size) or times.problem():
                self._check_end(await self._build(lambda _: True, lambda _: None))
            else:
                self._offsets, self._times = offsets, times
                await self._read_ends()
            self._loaded = True

    async def _build(self, accept: Callable[[FoundBatch], bool], visit: Callable[[FoundBatch], None]) -> int:
        """Make the indexes from the batches, up to one that is not accepted. Returns where it stopped."""
        self._offsets, self._times = OffsetIndex(self.base_offset), TimeIndex(self.base_offset)
        self._forget_ends()
        reader = BatchReader(self.file, 0, self.size)
        while (found := await reader.next()) is not None:
            if not accept(found):
                return found.position
            self._index(found.position, found.header)
            visit(found)
        return reader.position

    async def _read_ends(self) -> None:
        """What its first batch, and those after the last entry of the indexes, say of timestamps and offsets."""
        self._forget_ends()
        self._largest = TimestampOffset(*self._times.last)
        reader = BatchReader(self.file, self._offsets.last_position, self.size)
        while (found := await reader.next()) is not None:
            self._note(found.header)
            self._bytes_since_entry += found.header.size
        self._check_end(reader.position)
        if (first := await BatchReader(self.file, 0, self.size).next()) is not None:
            self._first_timestamp_ms = first.header.max_timestamp_ms

    def _check_end(self, position: int) -> None:
        if position != self.size:
            raise UnreadableLog(f"{self.file.path}, byte {position} of {self.size}: no whole batch begins there")

    def _forget_ends(self) -> None:
        self.next_offset = self.base_offset
        self._first_timestamp_ms = None
        self._largest = TimestampOffset(NO_TIMESTAMP, self.base_offset)
        self._bytes_since_entry = 0


def _select(data: bytes, offset: int, max_bytes: int, end_offset: int) -> tuple[int | None, int, int]:
    """Of the batches in `data`, which may be cut off: where the first one begins that holds `offset` or a later one,
    where those end that are whole, within `max_bytes` and below `end_offset`, and the size of the first, 0 if it is not
    below. None, if all are before `offset`."""
    start, first, at = None, 0, 0
    while at + HEADER_BYTES <= len(data):
        size, last_offset = read_bounds(data, at)
        if size < HEADER_BYTES:
            raise InvalidBatch(ErrorCode.CORRUPT_MESSAGE, f"a batch of {size} bytes")
        if last_offset >= offset:
            start = at if start is None else start
            if last_offset >= end_offset:
                break
            first = first or size
            if at + size > min(len(data), start + max_bytes):
                break
        at += size
    return start, at, first
