"""ZooKeeper sessions on real servers: the session of every world on TCP connections, and their factory.

Why not kazoo's client: it drops every watch when a connection breaks within a session, delivers the completions of
requests and of watches on two threads, has no zxid per reply, and takes three threads a session. What this lab studies
happens exactly there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from rebalance_lab.kernel import Kernel, RandomStream
from rebalance_lab.world.live.link import Link
from rebalance_lab.world.live.security import NO_SECURITY, Security
from rebalance_lab.world.live.takeover import Credentials
from rebalance_lab.world.ports import SESSION_TRANSITIONS, ReadOperation, SessionState
from rebalance_lab.world.zk import codec
from rebalance_lab.world.zk.connect_string import Server, parse
from rebalance_lab.world.zk.messages import Connect, Connected, Request
from rebalance_lab.world.zk.server_list import JAVA_WAITS, ConnectWaits, ServerList
from rebalance_lab.world.zk.session import Session
from rebalance_lab.world.zk.transport import Connection


class LiveSession(Session[Server]):
    """A `Session` that pings as long as it is connected."""

    __slots__ = ()

    @property
    def credentials(self) -> Credentials | None:
        """What another client needs to take the session over; None while it is not connected."""
        if self._link is None or self.state is not SessionState.CONNECTED:
            return None
        server = self._link.server
        assert isinstance(server, Server)
        return Credentials(server.host, server.port, self.session_id, self._password, self.negotiated_timeout_ms)

    def ended(self, link: Connection, why: str = "the connection ended") -> None:
        current = link is self._link
        super().ended(link, why)
        assert isinstance(self._transport, LiveZooKeeperFactory)
        if current and self._transport.on_loss is not None and SESSION_TRANSITIONS[self.state]:
            self._transport.on_loss(self.last_loss)

    def _connected(self, link: Connection, message: Connected) -> None:
        super()._connected(link, message)
        if self.state is SessionState.CONNECTED:
            self.watch_silence(link, self._transport.kernel.now_us())


class LiveZooKeeperFactory:
    """The port `world.ports.ZooKeeperFactory`, and its sessions' transport (`zk.transport.Transport`).

    `loop` must be the loop of the kernel's AsyncioDriver. `random` draws the waits before reconnects, and the order of
    the servers. `waits`: how long to wait before a reconnect; `request_limit_bytes`: the servers' jute.maxbuffer;
    `security`: authentication, ACLs and TLS. `on_loss`: called with the reason whenever a connection, or an attempt at
    one, has ended and another one will be made.
    """

    process = None
    name = "a live session"

    def __init__(
        self,
        kernel: Kernel,
        loop: asyncio.AbstractEventLoop,
        random: RandomStream,
        *,
        waits: ConnectWaits = JAVA_WAITS,
        request_limit_bytes: int = codec.REQUEST_LIMIT_BYTES,
        security: Security = NO_SECURITY,
    ) -> None:
        self.kernel = kernel
        self.request_limit_bytes = request_limit_bytes
        self._loop = loop
        self._random = random
        self._waits = waits
        self._security = security
        self._open: dict[Session[Server], LiveSession] = {}
        self.on_loss: Callable[[str], object] | None = None

    def open(self, connect: str, session_timeout_ms: int) -> LiveSession:
        """Begin a session. Raises BadConnectString, and ValueError for a timeout that is not positive; all other
        failures become events of the session."""
        if session_timeout_ms <= 0:
            raise ValueError(f"a session timeout of {session_timeout_ms} ms: give a positive one")
        where = parse(connect)
        servers = list(where.servers)
        self._random.shuffle(servers)
        server_list = ServerList(tuple(servers), self._random.below, self._waits)
        session = LiveSession(self, server_list, where.chroot, session_timeout_ms)
        self._open[session] = session
        return session

    @property
    def sessions(self) -> tuple[LiveSession, ...]:
        """Those that have not ended, oldest first."""
        return tuple(self._open.values())

    def close(self) -> None:
        """Abandon every session: for the end of a kernel. Sessions that should leave no znode behind are closed one by
        one before."""
        for session in self.sessions:
            session.abandon()

    # -- the transport ----------------------------------------------------------------------

    def connect(self, session: Session[Server], server: Server, message: Connect) -> Link:
        link = Link(self.kernel, self._loop, session, server, message, self._security)
        session.limit_attempt()
        return link

    def request_bytes(self, request: Request) -> int:
        return codec.request_bytes(request, self._security.acls)

    def in_requests(self, reads: Sequence[ReadOperation], prefix: str) -> Iterable[Sequence[ReadOperation]]:
        return codec.in_requests(reads, prefix)

    def forget(self, session: Session[Server]) -> None:
        self._open.pop(session, None)
