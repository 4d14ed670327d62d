"""Reading the batches of a segment's file, one after another."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from rebalance_lab.broker.log.errors import UnreadableLog
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.records import HEADER_BYTES, BatchHeader, InvalidBatch, read_header
from rebalance_lab.world.storage import File

#: Bytes that are read at once.
CHUNK_BYTES = 256 * 1024

#: Offset and length, with which messages of every format begin.
_START = Struct(">qi")


class FoundBatch(NamedTuple):
    """`position`: in the file. The batch's bytes begin at `at` in `data`."""

    position: int
    header: BatchHeader
    data: bytes
    at: int


class BatchReader:
    """The batches of `file` in [`start`, `end`). `start` must be a batch's position."""

    def __init__(self, file: File, start: int, end: int) -> None:
        #: Where the next batch begins, or where what is no whole batch begins.
        self.position = start
        self._file = file
        self._end = end
        self._chunk = b""
        self._chunk_at = start

    async def next(self) -> FoundBatch | None:
        """The next one. None at the end, and where what follows is no whole batch: `position` is before the end
        then. Raises UnreadableLog for messages of an older format, which Kafka may be able to read."""
        if not await self._hold(_START.size) or _START.unpack_from(self._chunk, self._at)[1] <= 0:
            return None  # a length of zero: file systems may fill a place with zeros that was not written
        await self._hold(HEADER_BYTES)
        try:
            header = read_header(self._chunk, self._at)
        except InvalidBatch as error:
            if error.code is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT:
                raise UnreadableLog(f"{self._file.path}, byte {self.position}: {error}") from None
            return None
        if header.size < HEADER_BYTES or not await self._hold(header.size):
            return None
        found = FoundBatch(self.position, header, self._chunk, self._at)
        self.position += header.size
        return found

    @property
    def _at(self) -> int:
        return self.position - self._chunk_at

    async def _hold(self, length: int) -> bool:
        """Whether the file has `length` more bytes, which are in the chunk then. Otherwise it holds what there is."""
        if self._at + length <= len(self._chunk):
            return True
        asked = min(max(length, CHUNK_BYTES), self._end - self.position)
        self._chunk, self._chunk_at = await self._file.pread(self.position, asked), self.position
        return len(self._chunk) >= length
