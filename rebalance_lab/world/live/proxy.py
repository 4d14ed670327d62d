"""A TCP proxy in front of a ZooKeeper server: cuts, refusals, lost replies, with counters
that prove that they happened."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass

from rebalance_lab.kernel import Future
from rebalance_lab.world.live.codec import FRAME_LENGTH_BYTES, REPLY_HEADER_BYTES, unpack_length, unpack_reply_header

HOST = "127.0.0.1"
_BACKLOG = 1024


@dataclass(slots=True)
class ProxyCounters:
    """Totals since the proxy began. `refused`: connections turned away while it was held."""

    connections: int = 0
    refused: int = 0
    cut: int = 0
    replies_lost: int = 0
    bytes_to_server: int = 0
    bytes_to_client: int = 0


class TcpProxy:
    """Listens on a free port of 127.0.0.1 and passes bytes on, on the loop of the live kernel.

    To the client it passes whole frames of ZooKeeper's protocol, so that it can tell a reply
    from a ping or a watch event. Four-letter words are answered without frames: ask the server.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, target_host: str, target_port: int) -> None:
        self.target = (target_host, target_port)
        self.counters = ProxyCounters()
        self.held = False
        self._loop = loop
        self._lost_reply: Future[int] | None = None
        self._connections: dict[_Connection, None] = {}
        self._listener = socket.create_server((HOST, 0), backlog=_BACKLOG)
        self._listener.setblocking(False)
        loop.add_reader(self._listener.fileno(), self._accept)

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def connect_string(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def open_connections(self) -> int:
        return len(self._connections)

    # -- faults -----------------------------------------------------------------------------

    def cut(self) -> int:
        """Break every connection, on both sides at once. Returns how many there were."""
        connections = list(self._connections)
        for connection in connections:
            connection.end(orderly=False)
        self.counters.cut += len(connections)
        return len(connections)

    def hold(self) -> None:
        """From now on turn new connections away, as a server that is down: the standing go on."""
        self.held = True

    def hang(self) -> None:
        """From now on leave new connections without an answer, as behind a lost route: they are
        neither refused nor served. Those that still wait at `release` go through."""
        self._loop.remove_reader(self._listener.fileno())

    def release(self) -> None:
        """Let new connections through again."""
        self.held = False
        self._loop.add_reader(self._listener.fileno(), self._accept)

    def lose_next_reply(self) -> Future[int]:
        """Pass requests on, but swallow the next reply to one and break its connection. Done,
        with the xid of the reply, when that has happened. Pings, watch events and the answers
        to a connect or to SetWatches do not count. Asked for twice, it is one reply."""
        if self._lost_reply is None:
            self._lost_reply = Future(("a reply lost by the proxy on port", self.port))
        return self._lost_reply

    def close(self) -> None:
        """Break all connections and stop listening."""
        if self._listener.fileno() >= 0:
            self._loop.remove_reader(self._listener.fileno())
            self._listener.close()
        self.cut()

    # -- connections ------------------------------------------------------------------------

    def _accept(self) -> None:
        for _ in range(_BACKLOG):
            try:
                client, _ = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            client.setblocking(False)
            if self.held:
                self.counters.refused += 1
                _reset(client)
            else:
                self.counters.connections += 1
                self._connections[_Connection(self, self._loop, client)] = None

    def ended(self, connection: _Connection) -> None:
        self._connections.pop(connection, None)

    def swallow(self, xid: int) -> bool:
        """Whether the reply with this xid is the one to lose."""
        lost = self._lost_reply
        if lost is None or xid <= 0:
            return False
        self._lost_reply = None
        self.counters.replies_lost += 1
        lost.set(xid)
        return True


def _reset(client: socket.socket) -> None:
    """Close with RST, as refused connections end."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    client.close()


class _Connection:
    """A client, the server, and the bytes between them."""

    def __init__(self, proxy: TcpProxy, loop: asyncio.AbstractEventLoop, client: socket.socket) -> None:
        self.proxy = proxy
        self.over = False
        self._loop = loop
        self._to_client = _Side(self)
        self._to_server = _Side(self)
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

    def received(self, side: _Side, data: bytes) -> None:
        counters = self.proxy.counters
        if side is self._to_client:
            counters.bytes_to_server += len(data)
            self._to_server.write(data, reader=self._to_client)
            return
        whole = self._whole_frames(data)
        counters.bytes_to_client += len(whole)
        if whole:
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
                self.over = self.proxy.swallow(unpack_reply_header(buffer, start + FRAME_LENGTH_BYTES)[0])
            if not self.over:
                self._welcomed = True
                start = end
        whole = bytes(buffer[:start])
        del buffer[:start]
        return whole

    def end(self, *, orderly: bool) -> None:
        """Break both sides; `orderly`: what was passed on before is delivered."""
        self.over = True
        self._task.cancel()
        if not self._to_client.end(orderly):
            self._client.close()
        self._to_server.end(orderly)
        self.proxy.ended(self)


class _Side(asyncio.Protocol):
    """One of the two sockets."""

    def __init__(self, connection: _Connection) -> None:
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
        self._connection.end(orderly=True)

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
        if orderly:
            self._transport.close()
        else:
            self._transport.abort()
        return True
