"""One connection through a `TcpProxy`: a client, the server, and the bytes between them."""

from __future__ import annotations

import asyncio
import socket
from typing import Protocol

from rebalance_lab.kernel.drivers import AsyncioDriver
from rebalance_lab.world.live.ways import LinkCounts, Passed, Way
from rebalance_lab.world.zk.codec import FRAME_LENGTH_BYTES, REPLY_HEADER_BYTES, unpack_length, unpack_reply_header


class Carrier(Protocol):
    """The proxy."""

    @property
    def target(self) -> tuple[str, int]: ...
    @property
    def silent_to_server(self) -> bool: ...
    @property
    def silent_to_client(self) -> bool: ...
    @property
    def held_to_server(self) -> LinkCounts: ...
    @property
    def held_to_client(self) -> LinkCounts: ...

    def passed(self, *, to_server: int = 0, to_client: int = 0) -> None:
        """Bytes went on."""
        ...

    def loses(self, xid: int, error: int, body: bytes) -> bool:
        """Whether this reply is the one to lose."""
        ...

    def ended(self, connection: Connection) -> None: ...


class Connection:
    """From the moment it is let in to its end. `sent_before`: what the client sent meanwhile."""

    def __init__(
        self, proxy: Carrier, loop: asyncio.AbstractEventLoop, client: socket.socket, sent_before: bytes = b""
    ) -> None:
        self.proxy = proxy
        self.over = False
        self._loop = loop
        self._sent_before = sent_before
        self._to_client = _Side(self)
        self._to_server = _Side(self)
        clock = AsyncioDriver(loop)
        self._way_to_server = Way(clock, proxy.held_to_server, self._pass_to_server)
        self._way_to_client = Way(clock, proxy.held_to_client, self._pass_to_client)
        self.directions_changed()
        self._reply = bytearray()  # bytes from the server that are not a whole frame yet
        self._welcomed = False  # the first frame answers the connect request: it has no xid
        self._client = client
        self._task = loop.create_task(self._join())

    async def _join(self) -> None:
        try:
            await self._loop.create_connection(lambda: self._to_server, *self.proxy.target)
            await self._loop.connect_accepted_socket(lambda: self._to_client, self._client)
        except OSError:
            self.end(orderly=False)
            return
        if self._sent_before:
            self.received(self._to_client, self._sent_before)

    @property
    def joined(self) -> bool:
        """Whether the server was reached."""
        return self._task.done()

    def received(self, side: _Side, data: bytes) -> None:
        self._way_from(side).pass_on(data)

    def _way_from(self, side: _Side) -> Way:
        return self._way_to_server if side is self._to_client else self._way_to_client

    def _pass_to_server(self, data: Passed) -> None:
        if data is None:
            self.end(orderly=True)
        elif not self._to_server.gone:
            self.proxy.passed(to_server=len(data))
            self._to_server.write(data, reader=self._to_client)

    def _pass_to_client(self, data: Passed) -> None:
        whole = b"" if data is None else self._whole_frames(data)
        if whole and not self._to_client.gone:
            self.proxy.passed(to_client=len(whole))
            self._to_client.write(whole, reader=self._to_server)
        if self.over or data is None:
            self.end(orderly=True)

    def _whole_frames(self, data: bytes) -> bytes:
        """What may go on to the client now. A reply that is to be lost ends the connection."""
        buffer = self._reply
        buffer += data
        start = 0
        while len(buffer) - start >= FRAME_LENGTH_BYTES and not self.over:
            end = start + FRAME_LENGTH_BYTES + unpack_length(buffer, start)[0]
            if end > len(buffer):
                break
            if self._welcomed and end - start >= FRAME_LENGTH_BYTES + REPLY_HEADER_BYTES:
                body = start + FRAME_LENGTH_BYTES
                xid, _, error = unpack_reply_header(buffer, body)
                self.over = self.proxy.loses(xid, error, bytes(buffer[body + REPLY_HEADER_BYTES : end]))
            if not self.over:
                self._welcomed = True
                start = end
        whole = bytes(buffer[:start])
        del buffer[:start]
        return whole

    def side_lost(self, side: _Side) -> None:
        """One socket has ended. The other one is closed, unless its direction is silent: then it is closed later."""
        if self._to_client.gone and self._to_server.gone:
            self.end(orderly=True)
        else:
            self._way_from(side).pass_on(None)

    def directions_changed(self) -> None:
        """The proxy is silent in other directions."""
        self._way_to_server.set(silent=self.proxy.silent_to_server)
        self._way_to_client.set(silent=self.proxy.silent_to_client)

    def end(self, *, orderly: bool) -> None:
        """Break both sides; `orderly`: what was passed on before is delivered."""
        self.over = True
        self._task.cancel()
        self._way_to_server.drop()
        self._way_to_client.drop()
        if not self._to_client.end(orderly):
            self._client.close()
        self._to_server.end(orderly)
        self.proxy.ended(self)


class _Side(asyncio.Protocol):
    """One of the two sockets."""

    def __init__(self, connection: Connection) -> None:
        self.gone = False
        self._connection = connection
        self._transport: asyncio.Transport | None = None
        self._reader: _Side | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self._connection.over:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        self._connection.received(self, data)

    def connection_lost(self, error: Exception | None) -> None:
        self.gone = True
        self._connection.side_lost(self)

    def write(self, data: bytes, reader: _Side) -> None:
        assert self._transport is not None, "the server's side is there before the client's is read"
        self._reader = reader
        self._transport.write(data)

    def pause_writing(self) -> None:
        if self._reader is not None:
            self._reader.read_on(False)

    def resume_writing(self) -> None:
        if self._reader is not None:
            self._reader.read_on(True)

    def read_on(self, on: bool) -> None:
        if self._transport is not None and not self._transport.is_closing():
            (self._transport.resume_reading if on else self._transport.pause_reading)()

    def end(self, orderly: bool) -> bool:
        """Close; False when there is nothing to close yet."""
        if self._transport is None:
            return False
        self.gone = True
        if orderly:
            self._transport.close()
        else:
            self._transport.abort()
        return True
