"""The segments of one log, and their files (`LogSegments`, `LocalLog`, Kafka 3.9.1)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from rebalance_lab.broker.log.config import LogConfig
from rebalance_lab.broker.log.files import delete_file
from rebalance_lab.broker.log.names import DELETED, LOG, OFFSET_INDEX, TIME_INDEX, segment_file
from rebalance_lab.broker.log.segment import Segment
from rebalance_lab.kernel import Kernel
from rebalance_lab.world.storage import NoSuchFile, Storage

_SUFFIXES = (LOG, OFFSET_INDEX, TIME_INDEX)


class Segments:
    """Segments in the order of their offsets. Once a log is open, it has at least one; the last one is written to.

    `layout` counts the changes by which what a reader knows of positions becomes wrong.
    """

    def __init__(self, tasks: Kernel, storage: Storage, folder: str) -> None:
        self.folder = folder
        self.layout = 0
        self._tasks = tasks
        self._storage = storage
        self._segments: list[Segment] = []
        #: What was dropped, its name for deleted files, and when it may go.
        self._dropped: list[tuple[int, Segment]] = []

    @property
    def all(self) -> tuple[Segment, ...]:
        return tuple(self._segments)

    @property
    def active(self) -> Segment:
        return self._segments[-1]

    @property
    def size(self) -> int:
        """Bytes of all batches."""
        return sum(each.size for each in self._segments)

    def at(self, offset: int) -> Sequence[Segment]:
        """The segment in whose range `offset` is, and all later ones; all of them, if it is before the first."""
        return self._segments[max(0, bisect_right(self._segments, offset, key=lambda each: each.base_offset) - 1) :]

    async def open(self, base_offset: int, config: LogConfig, now_ms: int, *, empty: bool = False) -> Segment:
        """Open a segment after the others, or make one. `empty`: what a crash has left under its name goes."""
        path = self._path(base_offset, LOG)
        file = await self._storage.open(path, create=empty)
        if empty and file.size:
            await file.truncate(0)
        segment = Segment(
            self._tasks,
            self._storage,
            self.folder,
            base_offset,
            file,
            index_interval_bytes=config.index_interval_bytes,
            created_ms=now_ms,
        )
        self._segments.append(segment)
        return segment

    async def flush(self, start_offset: int, end_offset: int) -> None:
        """Make durable what was written in these offsets, and the indexes of earlier segments that are not yet."""
        first = self.at(start_offset)[0].base_offset
        for segment in self.all:
            if segment.base_offset < end_offset and (segment.base_offset >= first or segment.unwritten):
                await segment.flush()
        if any(start_offset <= each.base_offset < end_offset for each in self._segments):
            await self._storage.sync_folder(self.folder)

    async def drop_first(self, count: int, due_ms: int) -> None:
        """Drop the oldest segments. Their files may go at `due_ms`: readers may need them until then. When this is
        done, no loss of power brings them back."""
        for segment in self._segments[:count]:
            await self._drop(segment, due_ms)
        await self._storage.sync_folder(self.folder)

    async def drop_from(self, number: int, due_ms: int) -> None:
        """Drop the newest segments, from that of this number on, the last one first: what a crash leaves of them
        has no gap. When this is done, no loss of power brings them back."""
        if self._segments[number:]:
            self.layout += 1
            for segment in self._segments[number:][::-1]:
                await self._drop(segment, due_ms)
            await self._storage.sync_folder(self.folder)
            self.layout += 1

    async def delete_dropped(self, now_ms: int) -> None:
        """Delete the files of those segments whose time has come."""
        for due in [each for each in self._dropped if each[0] <= now_ms]:
            _, segment = due
            self._dropped.remove(due)
            self.layout += 1  # a reader that is so late finds its file closed
            await segment.close()
            for suffix in _SUFFIXES:
                await delete_file(self._storage, self._path(segment.base_offset, suffix) + DELETED)

    async def close(self) -> None:
        for segment in (*self._segments, *(each for _, each in self._dropped)):
            await segment.close()

    async def _drop(self, segment: Segment, due_ms: int) -> None:
        self._segments.remove(segment)
        self._dropped.append((due_ms, segment))
        for suffix in _SUFFIXES:
            path = self._path(segment.base_offset, suffix)
            try:
                await self._storage.rename(path, path + DELETED)
            except NoSuchFile:
                continue

    def _path(self, base_offset: int, suffix: str) -> str:
        return f"{self.folder}/{segment_file(base_offset, suffix)}"
