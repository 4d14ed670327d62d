"""One connection through a `TcpProxy`: a client, the server, and the bytes between them."""

from __future__ import annotations

import asyncio
import socket
from typing import Protocol

from rebalance_lab.kernel.drivers import AsyncioDriver
from rebalance_lab.world.tcp import RETRY_DATA_US, retried_us
from rebalance_lab.world.zk.codec import FRAME_LENGTH_BYTES, REPLY_HEADER_BYTES, unpack_length, unpack_reply_header


class Carrier(Protocol):
    """The proxy."""

    @property
    def target(self) -> tuple[str, int]: ...
    @property
    def silent_to_server(self) -> bool: ...
    @property
    def silent_to_client(self) -> bool: ...

    def passed(self, *, to_server: int = 0, to_client: int = 0) -> None:
        """Bytes went on."""
        ...

    def stuck(self, *, to_server: int = 0, to_client: int = 0) -> None:
        """Bytes did not go on yet."""
        ...

    def loses(self, xid: int, error: int, body: bytes) -> bool:
        """Whether this reply is the one to lose."""
        ...

    def ended(self, connection: Connection) -> None: ...


class Withheld:
    """What one direction of a connection has lost; TCP sends it again, in order.

    `since_us`: when the first of it was sent; None: nothing is lost. The end of a connection is
    lost without any data.
    """

    __slots__ = ("data", "retry", "since_us")

    def __init__(self) -> None:
        self.data = bytearray()
        self.since_us: int | None = None
        self.retry: asyncio.TimerHandle | None = None

    def add(self, at_us: int, data: bytes = b"") -> None:
        """Lose `data`, or with none the end of the connection."""
        self.data += data
        if self.since_us is None:
            self.since_us = at_us

    def take(self) -> bytes:
        """All of it; from now nothing is lost."""
        self.stop_retry()
        data, self.data, self.since_us = bytes(self.data), bytearray(), None
        return data

    def stop_retry(self) -> None:
        if self.retry is not None:
            self.retry.cancel()
            self.retry = None


class Connection:
    """From the moment it is let in to its end. `sent_before`: what the client sent meanwhile.

    In a silent direction nothing passes, and no end of a connection either. What was sent
    arrives when the direction is open again and TCP would send it again (`world.tcp`); until then,
    what is sent after it waits behind it.
    """

    def __init__(
        self, proxy: Carrier, loop: asyncio.AbstractEventLoop, client: socket.socket, sent_before: bytes = b""
    ) -> None:
        self.proxy = proxy
        self.over = False
        self._loop = loop
        self._clock = AsyncioDriver(loop)
        self._sent_before = sent_before
        self._to_client = _Side(self)
        self._to_server = _Side(self)
        self._lost_to_server = Withheld()
        self._lost_to_client = Withheld()
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
        if side is self._to_client:
            self._from_client(data)
        else:
            self._from_server(data)

    def _from_client(self, data: bytes) -> None:
        if self._withheld_to_server:
            self._lost_to_server.add(self._clock.now_us(), data)
            self.proxy.stuck(to_server=len(data))
        elif not self._to_server.gone:
            self.proxy.passed(to_server=len(data))
            self._to_server.write(data, reader=self._to_client)

    def _from_server(self, data: bytes) -> None:
        if self._withheld_to_client:
            self._lost_to_client.add(self._clock.now_us(), data)
            self.proxy.stuck(to_client=len(data))
            return
        whole = self._whole_frames(data)
        if whole and not self._to_client.gone:
            self.proxy.passed(to_client=len(whole))
            self._to_client.write(whole, reader=self._to_server)
        if self.over:
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

    @property
    def _withheld_to_server(self) -> bool:
        """Whether what the client sends now does not arrive now."""
        return self.proxy.silent_to_server or self._lost_to_server.since_us is not None

    @property
    def _withheld_to_client(self) -> bool:
        """Whether what the server sends now does not arrive now."""
        return self.proxy.silent_to_client or self._lost_to_client.since_us is not None

    def side_lost(self, side: _Side) -> None:
        """One socket has ended. The other one is closed, unless its direction is silent: then it is closed later."""
        both = self._to_client.gone and self._to_server.gone
        if not both and side is self._to_client and self._withheld_to_server:
            self._lost_to_server.add(self._clock.now_us())
        elif not both and side is self._to_server and self._withheld_to_client:
            self._lost_to_client.add(self._clock.now_us())
        else:
            self.end(orderly=True)

    def directions_changed(self) -> None:
        """Where a direction is open, what it lost is sent again at TCP's next retransmission."""
        healed_us = self._clock.now_us()
        for lost, silent, send_again in (
            (self._lost_to_server, self.proxy.silent_to_server, self._to_server_again),
            (self._lost_to_client, self.proxy.silent_to_client, self._to_client_again),
        ):
            if silent:
                lost.stop_retry()
            elif lost.since_us is not None and lost.retry is None:
                again_us = retried_us(lost.since_us, healed_us, RETRY_DATA_US)
                lost.retry = self._clock.call_at(again_us, send_again)

    def _to_server_again(self) -> None:
        if data := self._lost_to_server.take():
            self._from_client(data)
        if self._to_client.gone:
            self.end(orderly=True)

    def _to_client_again(self) -> None:
        if data := self._lost_to_client.take():
            self._from_server(data)
        if self._to_server.gone:
            self.end(orderly=True)

    def end(self, *, orderly: bool) -> None:
        """Break both sides; `orderly`: what was passed on before is delivered."""
        self.over = True
        self._task.cancel()
        self._lost_to_server.stop_retry()
        self._lost_to_client.stop_retry()
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
