"""A TCP proxy in front of a ZooKeeper server: cuts, silence, refusals, lost replies, with
counters that prove that they happened."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass, field
from functools import partial

from rebalance_lab.kernel import Future
from rebalance_lab.kernel.drivers import AsyncioDriver
from rebalance_lab.world.live.proxy_connection import Connection
from rebalance_lab.world.live.reserved_port import HOST
from rebalance_lab.world.live.ways import LinkCounts
from rebalance_lab.world.tcp import RETRY_SYN_US, retried_us
from rebalance_lab.world.zk.codec import created_path

_BACKLOG = 1024


@dataclass(slots=True)
class ProxyCounters:
    """Totals since the proxy began: the proof that a fault took effect.

    `refused`: connections that were reset while it was held; `unanswered`: those that came while it hung or was silent
    in a direction; `stuck_*`: bytes that were held back in a silent direction.
    """

    connections: int = 0
    refused: int = 0
    unanswered: int = 0
    cut: int = 0
    replies_lost: int = 0
    bytes_to_server: int = 0
    bytes_to_client: int = 0
    held_to_server: LinkCounts = field(default_factory=LinkCounts)
    held_to_client: LinkCounts = field(default_factory=LinkCounts)

    @property
    def stuck_to_server(self) -> int:
        return self.held_to_server.held_bytes

    @property
    def stuck_to_client(self) -> int:
        return self.held_to_client.held_bytes


class TcpProxy:
    """Listens on a free port of 127.0.0.1 and passes bytes on, on the loop of the live kernel.

    It passes whole frames of ZooKeeper's protocol to the client, so that it can distinguish a reply from a ping or a
    watch event. Four-letter words do not work through it, as their answers have no frames: ask the server.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, target_host: str, target_port: int) -> None:
        self.target = (target_host, target_port)
        self.counters = ProxyCounters()
        self.held_to_server = self.counters.held_to_server
        self.held_to_client = self.counters.held_to_client
        self.held = False
        self.silent_to_server = False
        self.silent_to_client = False
        self._hanging = False
        self._loop = loop
        self._clock = AsyncioDriver(loop)
        self._lost_reply: Future[int] | None = None
        self._lost_part = ""
        self._connections: dict[Connection, None] = {}
        #: Accepted, and neither read nor answered: when each came, in µs.
        self._waiting: dict[socket.socket, int] = {}
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

    @property
    def joined_connections(self) -> int:
        """Those that have reached the server. One to a server that is gone may stay open without reaching it."""
        return sum(connection.joined for connection in self._connections)

    # -- faults -----------------------------------------------------------------------------

    def cut(self) -> int:
        """Break every connection, on both sides at once. Returns how many there were."""
        connections = list(self._connections)
        for connection in connections:
            connection.end(orderly=False)
        self.counters.cut += len(connections)
        return len(connections)

    def hold(self) -> None:
        """From now on reset new connections, as when the server is down; open ones stay."""
        self.held = True

    def hang(self) -> None:
        """From now on do not answer new connections, as behind a lost route. Those that still wait at `release` go
        through."""
        self._hanging = True

    def release(self) -> None:
        """End `hold` and `hang`: connections that wait go through at once. A silence ends by `heal`."""
        self.held = self._hanging = False
        for client in tuple(self._waiting):
            self._let_in(client)

    def silence(self, *, to_server: bool = True, to_client: bool = True) -> None:
        """From now on nothing passes in these directions, as when a network drops packets: neither data nor the end of
        a connection arrives, and neither side gets an error. New connections get no answer while either direction is
        silent, because a handshake needs both.

        A direction that is not named is open again (see `heal`).
        """
        self.silent_to_server, self.silent_to_client = to_server, to_client
        for connection in list(self._connections):
            connection.directions_changed()
        if not self._shut:
            healed_us = self._clock.now_us()
            for client, came_us in self._waiting.items():
                again_us = retried_us(came_us, healed_us, RETRY_SYN_US)
                self._clock.call_at(again_us, partial(self._let_in, client))

    def heal(self) -> None:
        """End `silence`. What was lost arrives when TCP would send it again: connection attempts at their next SYN
        retry, data and ends of connections at their next retransmission, and later data after them (see
        `world.tcp`)."""
        self.silence(to_server=False, to_client=False)

    def lose_next_reply(self, created: str = "") -> Future[int]:
        """Drop the next reply to a request and break its connection; requests are passed on. The future completes with
        the xid of the reply. Pings, watch events and the answers to a connect or to SetWatches are not replies.
        `created`: drop the next reply to a create of a znode whose path contains this, or to a multi that begins with
        one. A second call before the reply
        returns the same future."""
        if self._lost_reply is None:
            self._lost_part = created
            self._lost_reply = Future(("a reply lost by the proxy on port", self.port))
        return self._lost_reply

    def keep_replies(self) -> None:
        """Undo `lose_next_reply` if no reply was dropped yet."""
        self._lost_reply = None

    def close(self) -> None:
        """Break all connections and stop listening."""
        if self._listener.fileno() >= 0:
            self._loop.remove_reader(self._listener.fileno())
            self._listener.close()
        for client in self._waiting:
            client.close()
        self._waiting.clear()
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
            elif self._shut:
                self.counters.unanswered += 1
                self._waiting[client] = self._clock.now_us()
            else:
                self._begin(client)

    @property
    def _shut(self) -> bool:
        """Whether new connections get no answer."""
        return self._hanging or self.silent_to_server or self.silent_to_client

    def _begin(self, client: socket.socket, sent_before: bytes = b"") -> None:
        self.counters.connections += 1
        self._connections[Connection(self, self._loop, client, sent_before)] = None

    def _let_in(self, client: socket.socket) -> None:
        """Answer a client that waits, as if its handshake ended only now; one that gave up meanwhile has sent nothing.
        It goes on waiting while connections get no answer."""
        if self._shut or self._waiting.pop(client, None) is None:
            return
        sent = _sent_by(client)
        if sent is None:
            client.close()
        else:
            self._begin(client, sent)

    # -- for connections --------------------------------------------------------------------

    def ended(self, connection: Connection) -> None:
        self._connections.pop(connection, None)

    def passed(self, *, to_server: int = 0, to_client: int = 0) -> None:
        self.counters.bytes_to_server += to_server
        self.counters.bytes_to_client += to_client

    def loses(self, xid: int, error: int, body: bytes) -> bool:
        lost = self._lost_reply
        if lost is None or xid <= 0 or (self._lost_part and not self._tells_of_it(error, body)):
            return False
        self._lost_reply = None
        self.counters.replies_lost += 1
        lost.set(xid)
        return True

    def _tells_of_it(self, error: int, body: bytes) -> bool:
        return not error and self._lost_part.encode() in created_path(body)


def _sent_by(client: socket.socket) -> bytes | None:
    """What a waiting client has sent; None if it is gone."""
    parts = []
    try:
        while part := client.recv(65536):
            parts.append(part)
    except BlockingIOError:
        return b"".join(parts)
    except OSError:
        pass
    return None


def _reset(client: socket.socket) -> None:
    """Close with RST, as refused connections end."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    client.close()
