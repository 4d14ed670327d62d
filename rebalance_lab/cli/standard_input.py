"""Lines of standard input, as they come, while the tasks of a kernel go on."""

from __future__ import annotations

import sys
from io import BufferedReader, UnsupportedOperation
from typing import cast

from rebalance_lab.cli.failures import Failure
from rebalance_lab.kernel import Future
from rebalance_lab.kernel.live import LiveKernel

#: At most so much is read at once: the size of a pipe.
_READ_BYTES = 1 << 16


class InputLines:
    """Raises Failure if there is no standard input."""

    def __init__(self, live: LiveKernel) -> None:
        if sys.stdin is None:
            raise Failure("there is no standard input")
        self._live = live
        self._stream = cast(BufferedReader, sys.stdin.buffer)
        self._rest = bytearray()
        self._ended = False

    async def next(self) -> list[bytes]:
        """All lines that are there, without their ends; waits for one. Empty at the end of the input."""
        while not self._ended:
            await self._readable()
            data = self._stream.read1(_READ_BYTES)
            if data is None:  # another process has set it to return at once
                continue
            self._ended = not data
            lines = self._lines(data)
            if lines:
                return lines
        return []

    def _lines(self, data: bytes) -> list[bytes]:
        if self._ended:
            rest, self._rest = bytes(self._rest), bytearray()
            return [rest] if rest else []
        whole, newline, rest = data.rpartition(b"\n")
        if not newline:
            self._rest += data
            return []
        found = (bytes(self._rest) + whole).split(b"\n")
        self._rest = bytearray(rest)
        return found

    async def _readable(self) -> None:
        """Files, and what is no file at all, always are."""
        ready: Future[None] = Future("standard input")
        try:
            number = self._stream.fileno()
            self._live.loop.add_reader(number, ready.set, None)
        except (UnsupportedOperation, PermissionError):
            return
        try:
            await ready
        finally:
            self._live.loop.remove_reader(number)
