"""One TCP connection to a ZooKeeper server: `zk.messages` in frames, batched writes, TLS and authentication.

When it is given up is its session's concern (`zk.session`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from enum import Enum
from typing import Protocol

from rebalance_lab.history.events import session_text
from rebalance_lab.kernel import Kernel
from rebalance_lab.world import errors
from rebalance_lab.world.live.security import NO_SECURITY, XID_AUTH, Security
from rebalance_lab.world.zk import codec
from rebalance_lab.world.zk.codec import FRAME_LENGTH_BYTES, FRAME_LIMIT_BYTES, PING_FRAME, ProtocolViolation
from rebalance_lab.world.zk.connect_string import Server
from rebalance_lab.world.zk.messages import Answer, AuthRefused, Connect, Refusal, Request, ToClient, ToServer

_log = logging.getLogger(__name__)


#: Frames of together so many bytes do not wait for the end of the loop's turn.
WRITE_BYTES = 1 << 16


class LinkState(Enum):
    DIALING = "dialing"
    OPEN = "open"
    ESTABLISHED = "established"
    CLOSED = "closed"


#: ESTABLISHED: the server has accepted the session.
LINK_TRANSITIONS: dict[LinkState, frozenset[LinkState]] = {
    LinkState.DIALING: frozenset({LinkState.OPEN, LinkState.CLOSED}),
    LinkState.OPEN: frozenset({LinkState.ESTABLISHED, LinkState.CLOSED}),
    LinkState.ESTABLISHED: frozenset({LinkState.CLOSED}),
    LinkState.CLOSED: frozenset(),
}


class LinkOwner(Protocol):
    """`zk.session.Session`. After `ended`, or after it called `leave_as_client`, it hears no more of the link."""

    def opened(self, link: Link) -> None:
        """The TCP connection was made."""
        ...

    def woke(self, heard_us: int) -> None:
        """Called before bytes are read, as they may have come while the process was stopped. `heard_us`: when the
        last whole frame came."""
        ...

    def arrived(self, link: Link, message: ToClient) -> None: ...
    def ended(self, link: Link, why: str) -> None: ...


class Link(asyncio.Protocol):
    """A connection from its dialing to its end (`zk.transport.Connection`); never used twice."""

    def __init__(
        self,
        kernel: Kernel,
        loop: asyncio.AbstractEventLoop,
        owner: LinkOwner,
        server: Server,
        message: Connect,
        security: Security = NO_SECURITY,
    ) -> None:
        self.server = server
        self.state = LinkState.DIALING
        self.accepted = False
        self.sent_us = 0
        self._kernel = kernel
        self._loop = loop
        self._owner = owner
        self._connect_message = message
        self._session_id = message.session_id
        self._security = security
        self._transport: asyncio.Transport | None = None
        self._outgoing: list[bytes] = []
        self._outgoing_bytes = 0
        #: Requests that were sent and have no answer, in the order of the wire.
        self._asked: deque[Request] = deque()
        self._chunks: list[bytes] = []  # the first bytes of a frame that is not complete
        self._held_bytes = 0
        self._wanted_bytes = FRAME_LENGTH_BYTES
        self._heard_us = 0
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

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        if self.state is not LinkState.DIALING:  # closed in the very turn it connected
            transport.abort()
            return
        self._transport = transport
        self._heard_us = self._kernel.now_us()
        self._change(LinkState.OPEN)
        self.accepted = True
        self._owner.opened(self)
        self._send(codec.encode_connect(self._connect_message))

    # -- sending ----------------------------------------------------------------------------

    def to_server(self, message: ToServer) -> None:
        """Send a request or a ping. All of one turn of the loop go out in one write, but many bytes at once: the server
        can begin with them."""
        if isinstance(message, Request):
            self._asked.append(message)
            self._send(codec.encode(message, self._security.acls))
        else:
            self._send(PING_FRAME)

    def _send(self, frame: bytes) -> None:
        if not self._outgoing:
            self._loop.call_soon(self._flush)
        self._outgoing.append(frame)
        self._outgoing_bytes += len(frame)
        if self._outgoing_bytes >= WRITE_BYTES:
            self._flush()

    def _flush(self) -> None:
        frames, self._outgoing, self._outgoing_bytes = self._outgoing, [], 0
        if frames and self._transport is not None and self.state is not LinkState.CLOSED:
            self._transport.write(b"".join(frames))
            self.sent_us = self._kernel.now_us()

    # -- receiving --------------------------------------------------------------------------

    def heard_us(self, _now_us: int) -> int:
        """When the last whole frame came: only that ends a silence (ClientCnxnSocketNIO.doIO calls updateLastHeard)."""
        return self._heard_us

    @property
    def _closed(self) -> bool:
        return self.state is LinkState.CLOSED

    def data_received(self, data: bytes) -> None:
        if self._closed:  # TLS may hand on what came before
            return
        if self._held_bytes < FRAME_LENGTH_BYTES:
            self._owner.woke(self._heard_us)
            if self._closed:
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
            _log.warning(
                "ZooKeeper server %s violates the protocol in session %s: %s; the connection is broken and made anew",
                self.server,
                session_text(self._session_id),
                violation,
            )
            self._lose(str(violation))

    def _split(self, data: bytes) -> None:
        """Hand on each whole frame, and keep what is left. Raises ProtocolViolation."""
        start, total = 0, len(data)
        while self.state is not LinkState.CLOSED:
            body = start + FRAME_LENGTH_BYTES
            if body > total:
                self._wanted_bytes = FRAME_LENGTH_BYTES
                break
            length: int = codec.unpack_length(data, start)[0]
            if not 0 <= length <= FRAME_LIMIT_BYTES:
                raise ProtocolViolation(f"a frame of {length} bytes; the limit is {FRAME_LIMIT_BYTES}")
            end = body + length
            if end > total:
                self._wanted_bytes = FRAME_LENGTH_BYTES + length
                break
            self._heard_us = self._kernel.now_us()
            message = self._connected(data, body, end) if self.state is LinkState.OPEN else self._read(data, body, end)
            if message is not None:
                self._owner.arrived(self, message)
            start = end
        if start < total:
            self._chunks.append(data[start:])
            self._held_bytes = total - start

    def _connected(self, buffer: bytes, start: int, end: int) -> ToClient:
        message = codec.read_connected(buffer, start, end)
        if message.timeout_ms > 0:
            self._session_id = message.session_id
            self._change(LinkState.ESTABLISHED)
            if self._security.greeting:  # before all else, as Java's client has it
                self._send(self._security.greeting)
        return message

    def _read(self, buffer: bytes, start: int, end: int) -> ToClient | None:
        """The message of a frame; None for an answer to a ping or to the greeting. Raises ProtocolViolation."""
        body = start + codec.REPLY_HEADER_BYTES
        if body > end:
            raise ProtocolViolation(f"an answer of {end - start} bytes has no header")
        xid, zxid, code = codec.unpack_reply_header(buffer, start)
        if xid == codec.XID_PING:
            return None
        if xid == XID_AUTH:
            return None if code == 0 else AuthRefused()
        if xid == codec.XID_WATCH_EVENT:
            return codec.read_fired(buffer, body, end)
        request = self._asked_by(xid, code)
        value = codec.read_value(request, buffer, body, end) if code == 0 else None
        self._asked.remove(request)
        if isinstance(value, Refusal):
            code = value.code
        return Answer(xid, zxid, code, value)

    def _asked_by(self, xid: int, code: int) -> Request:
        """The request that an answer belongs to: the oldest. Raises ProtocolViolation."""
        if not self._asked:
            raise ProtocolViolation(f"an answer with xid {xid} and nothing was asked")
        request = self._asked[0]
        if code == errors.Unimplemented.code:  # comes ahead of earlier answers; the server then closes the connection
            request = next((each for each in self._asked if each.xid == xid), request)
        if request.xid != xid:
            name = request.operation.name.lower()
            raise ProtocolViolation(f"an answer with xid {xid} where {request.xid} ({name}) comes next")
        return request

    # -- end --------------------------------------------------------------------------------

    def connection_lost(self, error: Exception | None) -> None:
        why = "the server closed the connection" if error is None else f"{type(error).__name__}: {error}"
        if self.state is LinkState.OPEN:
            why += " before it answered (it is not serving, or has not yet seen what this session has)"
        self._lose(why)

    def leave_as_client(self) -> None:
        """Break the connection at once; the owner hears no more."""
        if self.state is LinkState.CLOSED:
            return
        self._change(LinkState.CLOSED)
        self._chunks.clear()
        if self._transport is not None:
            self._transport.abort()
        elif not self._dial.done():
            self._dial.cancel()

    def _lose(self, why: str) -> None:
        if self.state is not LinkState.CLOSED:
            self.leave_as_client()
            self._owner.ended(self, why)

    def _change(self, new: LinkState) -> None:
        assert new in LINK_TRANSITIONS[self.state], f"a link that is {self.state.value} cannot become {new.value}"
        self.state = new
