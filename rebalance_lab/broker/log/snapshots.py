"""The files in which a log's producer state is kept: `<offset>.snapshot`, the state before that offset."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Sequence

from rebalance_lab.broker.log.checkpoints import MalformedFile
from rebalance_lab.broker.log.files import delete_file, read_file, write_file
from rebalance_lab.broker.log.names import PRODUCER_SNAPSHOT, segment_file
from rebalance_lab.broker.log.producers import Producers
from rebalance_lab.broker.log.segments import Segments
from rebalance_lab.world.storage import Storage


class Snapshots:
    """`offsets`: of the files that are there."""

    def __init__(self, storage: Storage, folder: str, offsets: Iterable[int]) -> None:
        self._storage = storage
        self._folder = folder
        self._offsets = sorted(offsets)

    async def write(self, producers: Producers) -> None:
        """Keep the state as it is. Its checksum tells whether a crash has torn the file."""
        offset, data = producers.end_offset, producers.snapshot()
        if offset not in self._offsets:
            insort(self._offsets, offset)
        await write_file(self._storage, self._path(offset), data, sync=False)

    async def load(
        self, producers: Producers, *, start_offset: int, end_offset: int, now_ms: int, warn: Callable[[str], None]
    ) -> None:
        """The latest state that was kept between both offsets; no producers, at `start_offset`, if none was.

        Files of offsets outside are deleted: a later truncation would otherwise read a state that nothing keeps true.
        """
        producers.clear(start_offset)
        await self.delete([each for each in self._offsets if not start_offset <= each <= end_offset])
        for offset in list(reversed(self._offsets)):
            data = await read_file(self._storage, self._path(offset))
            try:
                producers.load(data or b"", offset, now_ms)
            except MalformedFile as error:
                warn(f"{self._path(offset)}: {error}; the producers are read from the log instead")
                await self.delete([offset])
            else:
                return

    async def delete(self, offsets: Iterable[int]) -> None:
        """No loss of power brings the files back: the log may reach their offsets again, with other producers."""
        gone = [each for each in offsets if each in self._offsets]
        for offset in gone:
            self._offsets.remove(offset)
            await delete_file(self._storage, self._path(offset))
        if gone:
            await self._storage.sync_folder(self._folder)

    async def keep(self, offsets: Sequence[int]) -> None:
        """Delete all others."""
        await self.delete([each for each in self._offsets if each not in offsets])

    def _path(self, offset: int) -> str:
        return f"{self._folder}/{segment_file(offset, PRODUCER_SNAPSHOT)}"


async def replay(producers: Producers, segments: Segments, end_offset: int) -> None:
    """Add what the segments hold between the producers' end offset and `end_offset`."""
    for segment in segments.at(producers.end_offset):
        if segment.base_offset >= end_offset:
            break
        reader = await segment.reader(max(producers.end_offset, segment.base_offset))
        while (found := await reader.next()) is not None and found.header.base_offset < end_offset:
            if found.header.last_offset >= producers.end_offset:
                producers.add(found.header)
    producers.end_offset = max(producers.end_offset, end_offset)
