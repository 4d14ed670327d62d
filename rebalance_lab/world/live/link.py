"""One TCP connection to a ZooKeeper server: framing, batched writes, heartbeats.

Waits as Java's client does (SendThread.run in ClientCnxn, ClientCnxnSocketNIO.doTransport; ZooKeeper
3.4.6 to 3.9.3). The TCP connection must stand within the connect timeout, and the answer to the first
frame must come within the connect timeout after that. Later, silence of two thirds of the session's
timeout breaks the connection, and a ping goes out after a third of it without anything sent.

Java's client also pings when something arrives after it has sent nothing for 10 s
(MAX_SEND_PING_INTERVAL) or for a third of the session's timeout less one second. This client does not:
a member that is told of a change reads at once, so it sends something anyway.

A process that was stopped for longer than the read timeout loses what its socket has buffered. In Java
one turn of SendThread.run reads either the 4 bytes of a length or one body (ClientCnxnSocketNIO.doIO), and
only a whole frame ends the silence. So the first turn after a stop reads a length, and the second finds
that the read timeout has passed, before it reads more.
"""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import Protocol

from rebalance_lab.world.live.codec import (
    FRAME_LENGTH_BYTES,
    FRAME_LIMIT_BYTES,
    PING_FRAME,
    ProtocolViolation,
    unpack_length,
)
from rebalance_lab.world.live.security import NO_SECURITY, Security
from rebalance_lab.world.zk.connect_string import Server


class LinkState(Enum):
    DIALING = "dialing"
    OPEN = "open"
    CLOSED = "closed"


LINK_TRANSITIONS: dict[LinkState, frozenset[LinkState]] = {
    LinkState.DIALING: frozenset({LinkState.OPEN, LinkState.CLOSED}),
    LinkState.OPEN: frozenset({LinkState.CLOSED}),
    LinkState.CLOSED: frozenset(),
}


class LinkOwner(Protocol):
    """Who is told. After `link_lost`, or after it called `close`, the owner hears no more."""

    def link_opened(self) -> None: ...
    def link_received(self, buffer: bytes, start: int, end: int) -> None:
        """One frame, without its length: buffer[start:end]. Raises ProtocolViolation, which
        breaks the connection."""
        ...

    def link_lost(self, why: str, *, violated: bool) -> None:
        """The connection is gone; `violated`: because the server broke the protocol."""
        ...


class Link(asyncio.Protocol):
    """A connection from its dialing to its end; never used twice."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        owner: LinkOwner,
        server: Server,
        connect_timeout_s: float,
        security: Security = NO_SECURITY,
    ) -> None:
        self.server = server
        self.state = LinkState.DIALING
        self._loop = loop
        self._owner = owner
        self._security = security
        self._transport: asyncio.Transport | None = None
        self._outgoing: list[bytes] = []
        self._chunks: list[bytes] = []  # the first bytes of a frame that is not complete
        self._held_bytes = 0
        self._wanted_bytes = FRAME_LENGTH_BYTES
        self._sent_at = self._heard_at = loop.time()
        self._ping_after_s = 0.0
        self._read_timeout_s = connect_timeout_s  # until a session is established
        self._established = False
        self._timer = self._limit()
        self._dial = loop.create_task(self._connect())

    # -- opening ----------------------------------------------------------------------------

    async def _connect(self) -> None:
        try:
            host, port = self.server.host, self.server.port
            context = self._security.context
            if context is None:
                await self._loop.create_connection(lambda: self, host, port)
            else:
                name = self._security.server_name or host
                await self._loop.create_connection(lambda: self, host, port, ssl=context, server_hostname=name)
        except OSError as error:
            self._lose(f"cannot connect: {error}")

    def _limit(self) -> asyncio.TimerHandle:
        return self._loop.call_later(self._read_timeout_s, self._not_established)

    def _not_established(self) -> None:
        what = "connection" if self.state is LinkState.DIALING else "session"
        self._lose(f"no {what} within the connect timeout of {self._read_timeout_s:g} s")

    def established(self, session_timeout_ms: int) -> None:
        """The session is there: heartbeats replace the connect timeout."""
        self._timer.cancel()
        self._established = True
        self._ping_after_s = session_timeout_ms / 3000
        self._read_timeout_s = 2 * session_timeout_ms / 3000
        self._sent_at = self._heard_at = self._loop.time()
        self._beat()

    def _beat(self) -> None:
        now = self._loop.time()
        if now - self._heard_at >= self._read_timeout_s:
            self._lose_silent(now)
            return
        if now - self._sent_at >= self._ping_after_s:
            self.send(PING_FRAME)
            self._sent_at = now
        due = min(self._heard_at + self._read_timeout_s, self._sent_at + self._ping_after_s)
        self._timer = self._loop.call_at(due, self._beat)

    def _lose_silent(self, now: float) -> None:
        if not self._established:
            self._not_established()
            return
        self._lose(f"nothing heard for {now - self._heard_at:.3f} s (read timeout {self._read_timeout_s:.3f} s)")

    # -- sending ----------------------------------------------------------------------------

    def send(self, frame: bytes) -> None:
        """Send a frame. All of one turn of the loop go out in one write."""
        if not self._outgoing:
            self._loop.call_soon(self._flush)
        self._outgoing.append(frame)

    def _flush(self) -> None:
        frames, self._outgoing = self._outgoing, []
        if self._transport is not None and self.state is LinkState.OPEN:
            self._transport.write(b"".join(frames))
            self._sent_at = self._loop.time()

    # -- asyncio's calls --------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        if self.state is not LinkState.DIALING:  # closed in the very turn it connected
            transport.abort()
            return
        self._transport = transport
        self._heard_at = self._loop.time()
        self._timer.cancel()
        self._timer = self._limit()
        self._change(LinkState.OPEN)
        self._owner.link_opened()

    def data_received(self, data: bytes) -> None:
        now = self._loop.time()
        if now - self._heard_at >= self._read_timeout_s and self._held_bytes < FRAME_LENGTH_BYTES:
            self._lose_silent(now)
            return
        if self._held_bytes:
            self._chunks.append(data)
            self._held_bytes += len(data)
            if self._held_bytes < self._wanted_bytes:
                return
            data = b"".join(self._chunks)
            self._chunks.clear()
            self._held_bytes = 0
        try:
            self._split(data)
        except ProtocolViolation as violation:
            self._lose(str(violation), violated=True)

    def _split(self, data: bytes) -> None:
        """Hand on each whole frame, and keep what is left. Raises ProtocolViolation."""
        start, total = 0, len(data)
        while self.state is LinkState.OPEN:
            body = start + FRAME_LENGTH_BYTES
            if body > total:
                self._wanted_bytes = FRAME_LENGTH_BYTES
                break
            length: int = unpack_length(data, start)[0]
            if not 0 <= length <= FRAME_LIMIT_BYTES:
                raise ProtocolViolation(f"a frame of {length} bytes; the limit is {FRAME_LIMIT_BYTES}")
            end = body + length
            if end > total:
                self._wanted_bytes = FRAME_LENGTH_BYTES + length
                break
            self._heard_at = self._loop.time()
            self._owner.link_received(data, body, end)
            start = end
        if start < total:
            self._chunks.append(data[start:])
            self._held_bytes = total - start

    def connection_lost(self, error: Exception | None) -> None:
        why = "the server closed the connection" if error is None else f"{type(error).__name__}: {error}"
        if not self._established:
            why += " before it answered (it is not serving, or has not yet seen what this session has)"
        self._lose(why)

    # -- end --------------------------------------------------------------------------------

    def close(self) -> None:
        """Break the connection at once; the owner hears no more."""
        if self.state is LinkState.CLOSED:
            return
        self._change(LinkState.CLOSED)
        self._timer.cancel()
        self._chunks.clear()
        if self._transport is not None:
            self._transport.abort()
        elif not self._dial.done():
            self._dial.cancel()

    def _lose(self, why: str, *, violated: bool = False) -> None:
        if self.state is not LinkState.CLOSED:
            self.close()
            self._owner.link_lost(why, violated=violated)

    def _change(self, new: LinkState) -> None:
        assert new in LINK_TRANSITIONS[self.state], f"a link that is {self.state.value} cannot become {new.value}"
        self.state = new
