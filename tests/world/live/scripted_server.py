"""A server that says what it is told to, and the frames it says."""

from __future__ import annotations

import asyncio
import struct

from rebalance_lab.kernel.live import LiveKernel

SESSION = 0x1234
WELCOME = struct.pack("!iiqi", 0, 4000, SESSION, 16) + b"p" * 16 + b"\0"
EXPIRED = struct.pack("!iiqi", 0, 0, 0, 16) + b"\0" * 16 + b"\0"
STAT = struct.pack("!qqqqiiiqiiq", *range(11))


def frame(content: bytes) -> bytes:
    return struct.pack("!i", len(content)) + content


def reply(xid: int, body: bytes = b"", *, zxid: int = 7, code: int = 0) -> bytes:
    return frame(struct.pack("!iqi", xid, zxid, code) + body)


class ScriptedServer:
    """Answers the n-th frame of each connection with the n-th bytes of a script; None: with
    nothing. `conversations` holds the frames of each connection, in order."""

    def __init__(self, live: LiveKernel) -> None:
        self.scripts: list[list[bytes | None]] = []
        self.conversations: list[list[bytes]] = []
        self._writers: list[asyncio.StreamWriter] = []
        self._closed = False
        self._loop = live.loop
        self._server = live.loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.connect_string = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._closed:  # it was accepted just before the end
            writer.transport.abort()
            return
        self._writers.append(writer)
        conversation: list[bytes] = []
        self.conversations.append(conversation)
        script = iter(self.scripts[min(len(self.conversations), len(self.scripts)) - 1])
        try:
            while True:
                (length,) = struct.unpack("!i", await reader.readexactly(4))
                conversation.append(await reader.readexactly(length))
                answer = next(script, None)
                if answer is not None:
                    writer.write(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def close(self) -> None:
        """Stop listening, and break all connections, also those that nobody has begun to serve."""
        self._closed = True
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        self._loop.run_until_complete(self._ended())

    async def _ended(self) -> None:
        """asyncio accepts and serves in tasks, one begun by the other: until none is left."""
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(others)
        await asyncio.sleep(0)  # an aborted transport closes its socket in the turn after
