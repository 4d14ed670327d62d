"""Opens live sessions (the port `world.ports.ZooKeeperFactory`)."""

from __future__ import annotations

import asyncio

from rebalance_lab.kernel import Kernel, RandomStream
from rebalance_lab.world.live.codec import REQUEST_LIMIT_BYTES
from rebalance_lab.world.live.security import NO_SECURITY, Security
from rebalance_lab.world.live.session import LiveSession
from rebalance_lab.world.zk.connect_string import parse
from rebalance_lab.world.zk.server_list import JAVA_WAITS, ConnectWaits, ServerList


class LiveZooKeeperFactory:
    """Sessions on `loop`, which must be the loop of the kernel's AsyncioDriver.

    `random` draws the waits before reconnects, and the order of the servers. `waits`: how long
    to wait before a reconnect; `request_limit_bytes`: the servers' jute.maxbuffer; `security`:
    authentication, ACLs and TLS.
    """

    def __init__(
        self,
        kernel: Kernel,
        loop: asyncio.AbstractEventLoop,
        random: RandomStream,
        *,
        waits: ConnectWaits = JAVA_WAITS,
        request_limit_bytes: int = REQUEST_LIMIT_BYTES,
        security: Security = NO_SECURITY,
    ) -> None:
        self._kernel = kernel
        self._loop = loop
        self._random = random
        self._waits = waits
        self._request_limit_bytes = request_limit_bytes
        self._security = security
        self._open: dict[LiveSession, None] = {}

    def open(self, connect: str, session_timeout_ms: int) -> LiveSession:
        """Begin a session. Raises BadConnectString, and ValueError for a timeout that is not
        positive; all else becomes an event of the session."""
        if session_timeout_ms <= 0:
            raise ValueError(f"a session timeout of {session_timeout_ms} ms: give a positive one")
        where = parse(connect)
        servers = list(where.servers)
        self._random.shuffle(servers)
        session = LiveSession(
            self._kernel,
            self._loop,
            ServerList(tuple(servers), self._random.below, self._waits),
            where.chroot,
            session_timeout_ms,
            self._request_limit_bytes,
            lambda it: self._open.pop(it, None),
            self._security,
        )
        self._open[session] = None
        return session

    @property
    def sessions(self) -> tuple[LiveSession, ...]:
        """Those that have not ended, oldest first."""
        return tuple(self._open)

    def close(self) -> None:
        """Drop every session without telling the server: for the end of a kernel. Sessions
        that should leave no znode behind are closed one by one before."""
        for session in self.sessions:
            session.abandon()
