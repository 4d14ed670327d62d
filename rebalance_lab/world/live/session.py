"""A ZooKeeper session on a real server (the port `world.ports.ZooKeeper`).

It behaves as ClientCnxn of ZooKeeper 3.4.6, the client of Kafka 0.8.2.2, on the loop of the kernel's
AsyncioDriver, without threads. Requests that 3.4.6 lacks (multi-read, SASL, TLS) are those of 3.9.3, and
SetWatches is split as 3.9.3 does it. The connect timeout starts with the attempt, as in 3.9.3 (docs/design.md). One
thing that 3.9.3 added is left out: its client ends a session by itself when it has heard nothing for 4/3
of the session timeout (`expirationTimeout`); in 3.4.6, and in 3.8.4, only a server's answer ends one.

Why not kazoo's client: it drops every watch when a connection breaks within a session, delivers the
completions of requests and of watches on two threads, has no zxid per reply, and takes three threads a
session. What this lab studies happens exactly there.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import structlog

from rebalance_lab.history.events import session_text
from rebalance_lab.kernel import Future, IllegalTransition, Kernel, Mailbox, MailboxFull
from rebalance_lab.world import errors
from rebalance_lab.world.live import codec, multi
from rebalance_lab.world.live.codec import ProtocolViolation, Request
from rebalance_lab.world.live.link import Link
from rebalance_lab.world.live.security import NO_SECURITY, XID_AUTH, Security
from rebalance_lab.world.live.takeover import Credentials
from rebalance_lab.world.ports import (
    SESSION_TRANSITIONS,
    Children,
    Node,
    ReadOperation,
    ReadResult,
    Reply,
    SessionEvent,
    SessionEventKind,
    SessionState,
    Stat,
    WatchEvent,
    WatchKind,
    WriteOperation,
    WriteResult,
)
from rebalance_lab.world.zk.connect_string import Chroot, Server
from rebalance_lab.world.zk.server_list import ServerList
from rebalance_lab.world.zk.watches import ClientWatches

#: Session events nobody has read. A member reads them at once; more means it does not read.
EVENTS_LIMIT = 10_000

#: Requests without an answer yet, sent or waiting for a connection.
REQUESTS_LIMIT = 200_000

_NO_PASSWORD = b"\0" * 16

_log = structlog.get_logger("rebalance_lab.world.live")


class LiveSession:
    """One session. Made by `LiveZooKeeperFactory.open`; see the port for what it promises.

    It tries for ever to connect, as the client of 3.4.6 does: only a server can say that a
    session has expired. `last_loss` tells why the latest connection (or attempt) ended.
    """

    def __init__(
        self,
        kernel: Kernel,
        loop: asyncio.AbstractEventLoop,
        server_list: ServerList[Server],
        chroot: Chroot,
        session_timeout_ms: int,
        request_limit_bytes: int,
        ended: Callable[[LiveSession], None],
        security: Security = NO_SECURITY,
    ) -> None:
        self.server_list = server_list
        self.chroot = chroot
        self.state = SessionState.CONNECTING
        self.session_id = 0
        self.negotiated_timeout_ms = 0
        self.last_loss = ""
        self.events: Mailbox[SessionEvent] = kernel.mailbox("session events", EVENTS_LIMIT)
        self._loop = loop
        self._requested_timeout_ms = session_timeout_ms
        self._request_limit_bytes = request_limit_bytes
        self._ended = ended
        self._security = security
        self._password = _NO_PASSWORD
        self._zxid = 0
        self._xid = 0
        self._watches = ClientWatches("a live session")
        self._pending: deque[Request] = deque()  # sent, in the order of the wire
        self._queued: deque[Request] = deque()  # waiting for the next connection
        self._link: Link | None = None
        self._reconnect: asyncio.TimerHandle | None = None
        self._closing: Future[None] | None = None
        server, _ = server_list.next()  # before the first attempt there is no wait
        self._dial(server)

    # -- operations -------------------------------------------------------------------------

    def create(self, path: str, data: bytes, *, ephemeral: bool = False, sequence: bool = False) -> Future[Reply[str]]:
        acls = self._security.acls
        return self.submit(codec.create(self.chroot, path, data, ephemeral=ephemeral, sequence=sequence, acls=acls))

    def get(self, path: str, *, watch: bool = False) -> Future[Reply[Node]]:
        return self.submit(codec.get(self.chroot, path, watch=watch))

    def children(self, path: str, *, watch: bool = False) -> Future[Reply[Children]]:
        return self.submit(codec.children(self.chroot, path, watch=watch))

    def exists(self, path: str, *, watch: bool = False) -> Future[Reply[Stat | None]]:
        return self.submit(codec.exists(self.chroot, path, watch=watch))

    def set(self, path: str, data: bytes, *, version: int = -1) -> Future[Reply[Stat]]:
        return self.submit(codec.set_data(self.chroot, path, data, version))

    def delete(self, path: str, *, version: int = -1) -> Future[Reply[None]]:
        return self.submit(codec.delete(self.chroot, path, version))

    def multi(self, operations: Sequence[WriteOperation]) -> Future[Reply[tuple[WriteResult, ...]]]:
        operations = tuple(operations)
        for index, operation in enumerate(operations):
            if not self.chroot.takes(operation.path):
                refused: Future[Reply[tuple[WriteResult, ...]]] = Future(("multi", operation.path))
                name = type(operation).__name__.lower()
                reason = errors.BadArguments(name, operation.path, session_id=self.session_id)
                refused.fail(errors.MultiRefused(index, reason))
                return refused
        return self.submit(multi.multi(self.chroot, operations, self._security.acls))

    def multi_read(self, reads: Sequence[ReadOperation]) -> Future[Reply[tuple[ReadResult, ...]]]:
        """See the port. More than a thousand reads are several requests, each a snapshot of its own."""
        return multi.MultiRead(self, tuple(reads)).future

    def submit(self, request: Request) -> Future[Reply[Any]]:
        """Send, queue, or refuse. Raises MailboxFull beyond REQUESTS_LIMIT."""
        length = len(request.body) + codec.REQUEST_HEADER_BYTES
        if self.state is SessionState.EXPIRED:
            self._refuse(request, errors.SessionExpired)
        elif self.state is SessionState.CLOSED or self._closing is not None:
            self._refuse(request, errors.SessionClosed)
        elif not self.chroot.takes(request.path):
            self._refuse(request, errors.BadArguments)
        elif length > self._request_limit_bytes:
            what = f"{request.operation} of {length} bytes (the server takes {self._request_limit_bytes})"
            request.future.fail(errors.RequestTooLarge(what, request.path, session_id=self.session_id))
        elif len(self._pending) + len(self._queued) >= REQUESTS_LIMIT:
            raise MailboxFull(
                f"session {session_text(self.session_id)} has {REQUESTS_LIMIT} requests without an answer"
            )
        elif self._link is not None and self.state is SessionState.CONNECTED:
            self._send(self._link, request)
        else:
            self._queued.append(request)
        return request.future

    def _send(self, link: Link, request: Request) -> None:
        self._xid = self._xid % codec.XID_LIMIT + 1
        self._pending.append(request)
        link.send(request.frame(self._xid))

    def _refuse(self, request: Request, error: type[errors.ZooKeeperError]) -> None:
        request.future.fail(error(request.operation, request.path, session_id=self.session_id))

    @property
    def credentials(self) -> Credentials | None:
        """What somebody needs to take the session over; None while it is not connected."""
        if self._link is None or self.state is not SessionState.CONNECTED:
            return None
        server = self._link.server
        return Credentials(server.host, server.port, self.session_id, self._password, self.negotiated_timeout_ms)

    # -- connecting -------------------------------------------------------------------------

    def _dial(self, server: Server) -> None:
        self._reconnect = None
        timeout_ms = self.negotiated_timeout_ms or self._requested_timeout_ms
        connect_timeout_s = timeout_ms / 1000 / len(self.server_list.servers)
        self._link = Link(self._loop, self, server, connect_timeout_s, self._security)

    def link_opened(self) -> None:
        assert self._link is not None
        self.server_list.opened()
        self._link.send(codec.connect_frame(self._zxid, self._requested_timeout_ms, self.session_id, self._password))

    def link_received(self, buffer: bytes, start: int, end: int) -> None:
        if self.state is SessionState.CONNECTED:
            self._answer(buffer, start, end)
        else:
            self._welcome(codec.read_welcome(buffer, start, end))

    def _welcome(self, welcome: codec.Welcome) -> None:
        link = self._link
        assert link is not None
        if welcome.timeout_ms <= 0:
            self._expire()
            return
        self.session_id, self._password = welcome.session_id, welcome.password
        self.negotiated_timeout_ms = welcome.timeout_ms
        self._change(SessionState.CONNECTED)
        self.server_list.established()
        link.established(welcome.timeout_ms)
        if self._security.greeting:  # before all else, as Java's client has it
            link.send(self._security.greeting)
        for batch in self._watches.batches():
            request = codec.set_watches(self.chroot, self._zxid, *batch)
            self._pending.append(request)
            link.send(request.frame(codec.XID_SET_WATCHES))
        queued, self._queued = self._queued, deque()
        for request in queued:
            self._send(link, request)
        self.events.put(SessionEvent(SessionEventKind.CONNECTED, self.session_id))

    # -- answers ----------------------------------------------------------------------------

    def _answer(self, buffer: bytes, start: int, end: int) -> None:
        body = start + codec.REPLY_HEADER_BYTES
        if body > end:
            raise ProtocolViolation(f"an answer of {end - start} bytes has no header")
        xid, zxid, code = codec.unpack_reply_header(buffer, start)
        if xid == codec.XID_PING:
            return
        if xid == XID_AUTH:
            if code != 0:
                self._end(SessionState.CLOSED, errors.AuthFailed)
            return
        if xid == codec.XID_WATCH_EVENT:
            self._watch_event(*codec.read_watch_event(buffer, body, end))
            return
        if not self._pending:
            raise ProtocolViolation(f"an answer with xid {xid} and nothing was asked")
        request = self._pending[0]
        if code == errors.Unimplemented.code:  # comes ahead of earlier answers; the server then closes the connection
            request = next((each for each in self._pending if each.xid == xid), request)
        if request.xid != xid:
            raise ProtocolViolation(f"an answer with xid {xid} where {request.xid} ({request.operation}) comes next")
        value = request.decode(buffer, body, end) if code == 0 else None
        self._pending.remove(request)
        if zxid > 0:
            self._zxid = zxid
        self._complete(request, code, zxid, value)

    def _complete(self, request: Request, code: int, zxid: int, value: Any) -> None:
        missing = code == errors.NoNode.code and request.operation == "exists"
        if isinstance(value, multi.Refused):
            request.future.fail(value.error(zxid, self.session_id))
        elif code == 0 or missing:
            watch = None
            if request.watch:
                children = request.operation == "children"
                watch = self._watches.add(request.path, children=children, missing=missing)
            request.future.set(Reply(value, zxid, watch))
        else:
            request.future.fail(
                errors.error_for(code, request.operation, request.path, zxid=zxid, session_id=self.session_id)
            )

    def _watch_event(self, kind: int, path: str) -> None:
        try:
            event = WatchEvent(WatchKind(kind), self.chroot.to_client(path), self._zxid)
        except ValueError:
            raise ProtocolViolation(f"a watch event of unknown type {kind} for {path}") from None
        self._watches.fire(event)

    # -- losing a connection ----------------------------------------------------------------

    def link_lost(self, why: str, *, violated: bool) -> None:
        link = self._link
        assert link is not None
        self.last_loss = f"{link.server}: {why}"
        if violated:
            _log.warning(
                "zookeeper_protocol_violation",
                session=session_text(self.session_id),
                server=str(link.server),
                why=why,
                action="the connection is broken and made anew",
            )
        self._link = None
        if self._closing is not None:
            self._end(SessionState.CLOSED, errors.ConnectionLoss)
            return
        was_connected = self.state is SessionState.CONNECTED
        if was_connected:
            self._change(SessionState.CONNECTING)
        server, wait_us = self.server_list.next()
        self._reconnect = self._loop.call_later(wait_us / 1e6, self._dial, server)
        self._fail_requests(errors.ConnectionLoss)
        if was_connected:
            self.events.put(SessionEvent(SessionEventKind.DISCONNECTED, self.session_id))

    def _fail_requests(self, error: type[errors.ZooKeeperError]) -> None:
        """Fail what is pending and what is queued now, not what is asked for meanwhile."""
        requests = (*self._pending, *self._queued)
        self._pending.clear()
        self._queued.clear()
        for request in requests:
            self._refuse(request, error)

    # -- ends -------------------------------------------------------------------------------

    def _expire(self) -> None:
        self.last_loss = "the session has expired"
        self._end(SessionState.EXPIRED, errors.SessionExpired)
        self.events.put(SessionEvent(SessionEventKind.EXPIRED, self.session_id))

    def close(self) -> Future[None]:
        """See the port. While a connection is being made, it waits for that attempt; between
        two attempts it ends at once, and the server lets the session expire (as with Java)."""
        if self._closing is not None:
            return self._closing
        closing: Future[None] = Future("close of a session")
        if self.state in (SessionState.EXPIRED, SessionState.CLOSED):
            closing.set(None)
            return closing
        self._closing = closing
        request = codec.close_session()
        request.future.on(lambda _: self._end(SessionState.CLOSED, errors.SessionClosed))
        if self._link is None:
            self._refuse(request, errors.ConnectionLoss)
        elif self.state is SessionState.CONNECTED:
            self._send(self._link, request)
        else:
            self._queued.append(request)
        return closing

    def abandon(self) -> None:
        """Drop the session as a process that ends does: the server is told nothing."""
        if self.state in (SessionState.CONNECTING, SessionState.CONNECTED):
            self._end(SessionState.CLOSED, errors.ConnectionLoss)

    def _end(self, state: SessionState, error: type[errors.ZooKeeperError]) -> None:
        """Nothing happens after this. `error` is what requests without an answer get."""
        if not SESSION_TRANSITIONS[self.state]:
            return
        self._change(state)
        if self._reconnect is not None:
            self._reconnect.cancel()
            self._reconnect = None
        if self._link is not None:
            self._link.close()
            self._link = None
        self._fail_requests(error)
        self._watches.fail(
            errors.SessionExpired if state is SessionState.EXPIRED else errors.SessionClosed, self.session_id
        )
        if self._closing is not None:
            self._closing.set(None)
        self._ended(self)

    def _change(self, new: SessionState) -> None:
        if new not in SESSION_TRANSITIONS[self.state]:
            raise IllegalTransition(
                f"session {session_text(self.session_id)} is {self.state.value}; it cannot become {new.value}"
            )
        self.state = new

    def __repr__(self) -> str:
        return f"<LiveSession {session_text(self.session_id)}: {self.state.value}>"
