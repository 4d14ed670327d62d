"""Frames on TCP connections (`world.net.connections.Pipe`): each behind its length, four bytes.

A server reads no more than it needs: what a client sends while its request is in hand stays with the operating
systems, and slows the client down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from rebalance_lab.kernel import Future
from rebalance_lab.kernel.drivers import AsyncioDriver
from rebalance_lab.world.live.ways import LinkCounts, Passed, Way
from rebalance_lab.world.net.connections import AcceptedConnection, ClientConnection
from rebalance_lab.world.network import Frame

LENGTH_BYTES = 4

#: Frames up to this size are sent together with their length. Longer ones are not copied for that.
JOINED_BYTES = 16_384

#: A server's end stops reading when it has so much that nobody has asked for.
_AHEAD_BYTES = 65_536


class LivePipe(asyncio.Protocol):
    """One end of a TCP connection. `end`: whose it is; `always`: frames arrive as they come, instead of one for each
    `read_one`."""

    end: ClientConnection[Any, Any] | AcceptedConnection[Any, Any]

    def __init__(self, *, always: bool) -> None:
        self._always = always
        self._wanted = always
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._why: str | None = None
        self._over = False
        self._room: Future[None] | None = None

    # -- reading ----------------------------------------------------------------------------

    def read_one(self) -> None:
        self._wanted = True
        self._pass_on()
        if self._transport is not None and not self._transport.is_closing() and not self._transport.is_reading():
            self._transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        self._read(data)

    def eof_received(self) -> bool:
        """The other side sends no more. It may wait for the reply to what it sent, so the socket stays open."""
        self._ended("the other side closed the connection")
        return True

    def connection_lost(self, error: Exception | None) -> None:
        self._room_again()
        self._ended("the connection was closed" if error is None else f"the connection broke: {error}")

    def _ended(self, why: str) -> None:
        """What the other side sent is read first. Called again when the socket is gone."""
        self._why = self._why or why
        self._pass_on()

    def _read(self, data: bytes) -> None:
        self._buffer += data
        self._pass_on()
        if not self._wanted and len(self._buffer) >= _AHEAD_BYTES and self._transport is not None:
            self._transport.pause_reading()

    def _pass_on(self) -> None:
        buffer = self._buffer
        while self._wanted and not self._over:
            length = int.from_bytes(buffer[:LENGTH_BYTES], "big", signed=True)
            if len(buffer) >= LENGTH_BYTES and not self.end.takes(length):
                return
            if len(buffer) >= LENGTH_BYTES + max(length, 0):
                with memoryview(buffer) as view:
                    frame = bytes(view[LENGTH_BYTES : LENGTH_BYTES + length])
                del buffer[: LENGTH_BYTES + length]
                self._wanted = self._always
                self.end.arrived(frame)
            else:
                if self._why is not None:
                    self.close()
                    self.end.lost(self._why)
                return

    # -- writing ----------------------------------------------------------------------------

    def write(self, frame: Frame) -> None:
        length = len(frame).to_bytes(LENGTH_BYTES, "big")
        if len(frame) <= JOINED_BYTES:
            self._send(length + frame)
        else:
            self._send(length)
            self._send(frame)

    def room(self) -> Future[None]:
        if self._room is not None:
            return self._room
        ready: Future[None] = Future("room in the socket")
        ready.set(None)
        return ready

    def pause_writing(self) -> None:
        self._room = Future("room in the socket")

    def resume_writing(self) -> None:
        self._room_again()

    def _room_again(self) -> None:
        if self._room is not None:
            self._room.set(None)
            self._room = None

    def _send(self, data: Passed) -> None:
        """Write `data`; None: close."""
        if self._transport is not None:
            if data is None:
                self._transport.close()
            else:
                self._transport.write(data)

    # -- end --------------------------------------------------------------------------------

    def close(self) -> None:
        self._over = True
        self._send(None)

    def abort(self) -> None:
        self._over = True
        if self._transport is not None:
            self._transport.abort()


class AcceptedPipe(LivePipe):
    """A server's end. `came`: makes the connection of a client, from the client's address."""

    end: AcceptedConnection[Any, Any]

    def __init__(self, came: Callable[[AcceptedPipe, str], None], gone: Callable[[AcceptedPipe], None]) -> None:
        super().__init__(always=False)
        self._came = came
        self._gone = gone

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        host, port = transport.get_extra_info("peername")[:2]
        self._came(self, f"{host}:{port}")

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._gone(self)

    def _ended(self, why: str) -> None:
        super()._ended(why)
        self.end.left(why)


class DialedPipe(LivePipe):
    """A client's end, from the attempt on. Faults of links act here: it is the one end that knows both hosts.
    `to_server`, `to_client`: its ways."""

    end: ClientConnection[Any, Any]

    def __init__(self, loop: asyncio.AbstractEventLoop, counts: LinkCounts, gone: Callable[[DialedPipe], None]) -> None:
        super().__init__(always=True)
        clock = AsyncioDriver(loop)
        self.to_server = Way(clock, counts, super()._send)
        self.to_client = Way(clock, counts, self._from_server)
        self._loop = loop
        self._gone = gone
        self._dial: asyncio.Task[None] | None = None
        self._why_lost = ""
        self._socket_gone = False

    def dial(self) -> None:
        """Begin the attempt, unless it was given up."""
        if not self._over:
            self._dial = self._loop.create_task(self._connect())

    async def _connect(self) -> None:
        try:
            await self._loop.create_connection(lambda: self, self.end.address.host, self.end.address.port)
        except ConnectionRefusedError:
            self._failed("the connection was refused: nobody listens there")
        except OSError as error:
            self._failed(str(error))

    def _failed(self, why: str) -> None:
        self._gone(self)
        self.end.lost(why)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self._over:  # given up in the very turn it connected
            transport.abort()
        else:
            self.end.connected()

    def data_received(self, data: bytes) -> None:
        self.to_client.pass_on(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._socket_gone = True
        super().connection_lost(error)

    def _ended(self, why: str) -> None:
        self._why_lost = self._why_lost or why
        self.to_client.pass_on(None)

    def _from_server(self, data: Passed) -> None:
        if data is None:
            super()._ended(self._why_lost)
            if self._socket_gone:
                self._gone(self)
        else:
            self._read(data)

    def _send(self, data: Passed) -> None:
        self.to_server.pass_on(data)

    def abort(self) -> None:
        super().abort()
        self.to_server.drop()
        self.to_client.drop()
        if self._transport is None:
            self._gone(self)
            if self._dial is not None:
                self._dial.cancel()
