"""A ZooKeeper session as its client keeps it, in every world.

It behaves as ClientCnxn of ZooKeeper 3.4.6, the client of Kafka 0.8.2.2. Requests that 3.4.6 lacks (multi-read, SASL,
TLS) are those of 3.9.3, and SetWatches is split as 3.9.3 does it. The connect timeout starts with the attempt, as in
3.9.3 (docs/design.md). One thing that 3.9.3 added is left out: its client ends a session by itself when it has heard
nothing for 4/3 of the session timeout (`expirationTimeout`); in 3.4.6, and in 3.8.4, only a server's answer ends one.

A world supplies a `Transport`, which makes connections, and its kernel, which keeps the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Generic

from rebalance_lab.history.events import session_text
from rebalance_lab.kernel import Future, IllegalTransition, Mailbox, MailboxFull
from rebalance_lab.world import errors
from rebalance_lab.world.ports import (
    SESSION_TRANSITIONS,
    ReadOperation,
    Reply,
    SessionEvent,
    SessionEventKind,
    SessionState,
    WatchEvent,
)
from rebalance_lab.world.zk import answers
from rebalance_lab.world.zk.connect_string import Chroot
from rebalance_lab.world.zk.heartbeat import Heartbeat
from rebalance_lab.world.zk.messages import (
    SET_WATCHES_XID,
    XID_LIMIT,
    Answer,
    AuthRefused,
    Connect,
    Connected,
    Fired,
    Operation,
    Rearm,
    Request,
    ToClient,
)
from rebalance_lab.world.zk.operations import Operations
from rebalance_lab.world.zk.server_list import ServerList
from rebalance_lab.world.zk.transport import Connection, ServerT, Transport
from rebalance_lab.world.zk.watches import ClientWatches

#: Session events that were not read. A session that reconnects makes two, and a member reads them at once.
EVENTS_LIMIT = 10_000

#: Requests without an answer, sent or waiting for a connection.
REQUESTS_LIMIT = 200_000

#: What each operation of a request has beside its path and its data, at most: headers, ACLs, flags, version.
_FIXED_BYTES = 256

#: The most bytes that a character of a path takes (UTF-8).
_CHARACTER_BYTES = 4

_LABELS = {operation: f"reply to {operation.name}" for operation in Operation}

# Python 3.11 looks up the members of an enumeration slowly.
_CONNECTED = SessionState.CONNECTED
_CLOSE = Operation.CLOSE
_EXISTS = Operation.EXISTS
_CHILDREN = Operation.CHILDREN
_MULTI_READ = Operation.MULTI_READ
_NO_NODE = errors.NoNode.code


class Session(Operations, Generic[ServerT]):
    """The port `world.ports.ZooKeeper` on the connections of a transport.

    It reconnects forever: only a server can say that a session has expired. `last_loss` says why the latest connection
    or attempt ended.
    """

    __slots__ = (
        "_asked_timeout_ms",
        "_chroot",
        "_closing",
        "_dialed_us",
        "_heartbeat",
        "_link",
        "_password",
        "_pending",
        "_refusal",
        "_timer",
        "_transport",
        "_watches",
        "_xid",
        "_zxid",
        "events",
        "last_loss",
        "negotiated_timeout_ms",
        "server_list",
        "session_id",
        "state",
    )

    def __init__(
        self,
        transport: Transport[ServerT],
        server_list: ServerList[ServerT],
        chroot: Chroot,
        session_timeout_ms: int,
    ) -> None:
        self.server_list = server_list
        self.session_id = 0
        self.state = SessionState.CONNECTING
        self.negotiated_timeout_ms = 0
        self.last_loss = ""
        self.events: Mailbox[SessionEvent] = Mailbox(f"session events of {transport.name}", EVENTS_LIMIT)
        self._transport = transport
        self._chroot = chroot
        self._asked_timeout_ms = session_timeout_ms
        self._password = b""
        self._zxid = 0
        self._xid = 0
        #: Requests without an answer by their xids, in the order they were asked for.
        self._pending: dict[int, tuple[Request, Future[Any]]] = {}
        self._watches: ClientWatches | None = None  # made when first needed: most sessions of 100,000 have none
        self._closing: Future[None] | None = None
        self._refusal: type[errors.ZooKeeperError] | None = None  # of all operations, once it ends
        self._timer: Any = None
        self._heartbeat: Heartbeat | None = None
        self._link: Connection | None = None
        self._dialed_us = 0
        server, _ = server_list.next()  # before the first attempt there is no wait
        self._connect(server)

    # -- requests ---------------------------------------------------------------------------

    def close(self) -> Future[None]:
        """See the port. While a connection is being made, the close waits for that attempt. Between two attempts the
        session ends at once, and at the server it lives until it expires: ClientCnxn does not connect only to close."""
        if self._closing is None:
            if not SESSION_TRANSITIONS[self.state]:
                self._closing = Future("close")
                self._closing.set(None)
                return self._closing
            if self._link is not None:
                self._ask(_CLOSE, "/")
            self._closing = Future(("close of session", f"{self.session_id:#x}"))
            self._refusal = errors.SessionClosed
            if self._link is None:
                self._end(SessionState.CLOSED, errors.SessionClosed)
        return self._closing

    def abandon(self) -> None:
        """Drop the session as a process that ends does: the server is not told."""
        if SESSION_TRANSITIONS[self.state]:
            self._end(SessionState.CLOSED, errors.ConnectionLoss)

    def _in_requests(self, reads: Sequence[ReadOperation]) -> Iterable[Sequence[ReadOperation]]:
        return self._transport.in_requests(reads, self._chroot.prefix)

    def _ask(self, operation: Operation, path: str, watch: bool = False, **fields: Any) -> Future[Reply[Any]]:
        """Send a request, keep it for the next connection, or refuse it. Raises MailboxFull beyond REQUESTS_LIMIT."""
        transport = self._transport
        future: Future[Reply[Any]] = Future((_LABELS[operation], path, "asked by", transport.name))
        if self._refusal is not None:
            future.fail(self._error(self._refusal, operation, path))
        elif not self._chroot.takes(path):
            future.fail(self._error(errors.BadArguments, operation, path))
        else:
            xid = self._xid % XID_LIMIT + 1
            request = Request(xid, operation, self._chroot.to_server(path), watch, **fields)
            limit = transport.request_limit_bytes
            if operation is not _MULTI_READ and most_bytes(request) > limit:
                length = transport.request_bytes(request)
                if length > limit:
                    what = f"{operation.name.lower()} of {length} bytes (the server takes {limit})"
                    future.fail(errors.RequestTooLarge(what, path, session_id=self.session_id))
                    return future
            if len(self._pending) >= REQUESTS_LIMIT and operation is not _CLOSE:
                session = session_text(self.session_id)
                raise MailboxFull(f"session {session} has {REQUESTS_LIMIT} requests without an answer")
            self._xid = xid
            self._pending[xid] = (request, future)
            if self.state is _CONNECTED and self._link is not None:
                self._link.to_server(request)
        return future

    def _error(self, kind: type[errors.ZooKeeperError], operation: Operation, path: str) -> errors.ZooKeeperError:
        return kind(operation.name.lower(), path, session_id=self.session_id)

    # -- connecting -------------------------------------------------------------------------

    def _connect(self, server: ServerT) -> None:
        self._timer = None
        self._dialed_us = self._transport.kernel.now_us()
        message = Connect(self.session_id, self._asked_timeout_ms, self._zxid, self._password)
        self._link = self._transport.connect(self, server, message)

    def limit_attempt(self) -> None:
        """The connection attempt may hang: give it up after the connect timeout."""
        if self._timer is None and self.state is SessionState.CONNECTING:
            transport = self._transport
            due_us = transport.kernel.now_us() + self._connect_timeout_us
            self._timer = transport.kernel.call_at(due_us, self._give_up_attempt, process=transport.process)

    def opened(self, link: Connection) -> None:
        """The TCP connection was made: the connect timeout begins anew, for the server's answer
        (ClientCnxnSocketNIO.doTransport after finishConnect, 3.4.6 and 3.9.3)."""
        if link is self._link and self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._dialed_us = self._transport.kernel.now_us()
            self.limit_attempt()

    @property
    def _connect_timeout_us(self) -> int:
        """The session timeout divided by the number of servers."""
        return (self.negotiated_timeout_ms or self._asked_timeout_ms) * 1000 // len(self.server_list.servers)

    def _give_up_attempt(self) -> None:
        what = "session" if self._link is not None and self._link.accepted else "connection"
        self.drop_connection(f"no {what} within the connect timeout of {self._connect_timeout_us / 1e6:g} s")

    def drop_connection(self, why: str) -> None:
        """Give the connection up from this side."""
        link = self._link
        if link is not None:
            link.leave_as_client()
            self.ended(link, why)

    def ended(self, link: Connection, why: str = "the connection ended") -> None:
        """The connection, or the attempt at one, is over."""
        if link is not self._link:
            return
        self._link = None
        self.last_loss = f"{link.server}: {why}"
        self._disarm()
        was_connected = self.state is _CONNECTED
        if was_connected:
            self._change(SessionState.CONNECTING)
        self._fail_pending(errors.ConnectionLoss)
        if not SESSION_TRANSITIONS[self.state]:  # a callback closed it just now
            return
        if self._closing is not None:
            self._end(SessionState.CLOSED, errors.SessionClosed)
            return
        if link.accepted:
            self.server_list.opened()
        transport = self._transport
        server, wait_us = self.server_list.next()
        due_us = transport.kernel.now_us() + wait_us
        self._timer = transport.kernel.call_at(due_us, partial(self._connect, server), process=transport.process)
        if was_connected:
            self.events.put(SessionEvent(SessionEventKind.DISCONNECTED, self.session_id))

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._heartbeat is not None:
            self._heartbeat.stop()
            self._heartbeat = None

    # -- silence ----------------------------------------------------------------------------

    def watch_silence(self, link: Connection, heard_us: int) -> None:
        """Ping from now, and give the connection up when nothing comes by it for the read timeout. `heard_us`: when
        something came last. An attempt is given up after the connect timeout instead."""
        if link is not self._link:
            return
        if self.state is SessionState.CONNECTING:
            self.limit_attempt()
        elif self._heartbeat is None:
            transport = self._transport
            self._heartbeat = Heartbeat(
                transport.kernel, transport.process, link, self.negotiated_timeout_ms, heard_us, self._silent
            )

    def woke(self, heard_us: int) -> None:
        """The process may have been stopped, and has not read yet what came meanwhile. `heard_us`: when it last heard
        something. If that is the read timeout ago (two thirds of the session timeout; the connect timeout for an
        attempt), the client gives the connection up, and what came is lost. In ClientCnxn (SendThread.run of 3.4.6
        and 3.9.3) the first turn after a stop reads no more than the length of a frame (ClientCnxnSocketNIO.doIO), and
        the next one finds the silence."""
        connected = self.state is _CONNECTED
        limit_us = self.negotiated_timeout_ms * 2000 // 3 if connected else self._connect_timeout_us
        if self._transport.kernel.now_us() - heard_us >= limit_us:
            if connected:
                self._silent(heard_us)
            else:
                self._give_up_attempt()

    def _silent(self, heard_us: int) -> None:
        silent_s = (self._transport.kernel.now_us() - heard_us) / 1e6
        read_timeout_s = self.negotiated_timeout_ms * 2 / 3000
        self.drop_connection(f"nothing heard for {silent_s:.3f} s (read timeout {read_timeout_s:.3f} s)")

    # -- what arrives -----------------------------------------------------------------------

    def arrived(self, link: Connection, message: ToClient) -> None:
        """A message was read. One of a connection that the client has given up is lost."""
        if link is not self._link:
            return
        if isinstance(message, Answer):
            self._answered(message)
        elif isinstance(message, Connected):
            self._connected(link, message)
        elif isinstance(message, Fired):
            if self._watches is not None:
                self._watches.fire(WatchEvent(message.kind, self._chroot.to_client(message.path), self._zxid))
        elif isinstance(message, AuthRefused):
            self._end(SessionState.CLOSED, errors.AuthFailed)
        else:
            self._ponged()

    def _ponged(self) -> None:
        """A ping was answered."""

    def _connected(self, link: Connection, message: Connected) -> None:
        self._disarm()
        if message.timeout_ms <= 0:
            self.last_loss = "the session has expired"
            self._end(SessionState.EXPIRED, errors.SessionExpired)
            return
        self.server_list.established()
        self.session_id = message.session_id
        self._password = message.password
        self.negotiated_timeout_ms = message.timeout_ms
        self._change(_CONNECTED)
        if self._watches is not None:
            for paths in self._watches.batches():
                at_server = [tuple([self._chroot.to_server(path) for path in each]) for each in paths]
                rearm = Rearm(self._zxid, *at_server)
                link.to_server(Request(SET_WATCHES_XID, Operation.SET_WATCHES, "", rearm=rearm))
        for request, _ in self._pending.values():
            link.to_server(request)
        self.events.put(SessionEvent(SessionEventKind.CONNECTED, self.session_id))

    def _answered(self, answer: Answer) -> None:
        if answer.zxid > 0:
            self._zxid = answer.zxid
        if answer.xid == SET_WATCHES_XID:
            return
        request, future = self._pending.pop(answer.xid)
        operation = request.operation
        if operation is _CLOSE:
            self._end(SessionState.CLOSED, errors.SessionClosed)
            return
        missing = answer.code == _NO_NODE and operation is _EXISTS
        if answer.code != 0 and not missing:
            future.fail(answers.failure(self._chroot, request, answer, self.session_id))
            return
        watch = None
        if request.watch:
            if self._watches is None:
                self._watches = ClientWatches(self._transport.name)
            path = self._chroot.to_client(request.path)
            watch = self._watches.add(path, children=operation is _CHILDREN, missing=missing)
        future.set(Reply(answers.value(self._chroot, request, answer, self.session_id), answer.zxid, watch))

    # -- ends -------------------------------------------------------------------------------

    def _change(self, new: SessionState) -> None:
        if new not in SESSION_TRANSITIONS[self.state]:
            session = session_text(self.session_id)
            raise IllegalTransition(f"session {session} is {self.state.value}; it cannot become {new.value}")
        self.state = new

    def _end(self, state: SessionState, error: type[errors.ZooKeeperError]) -> None:
        """The session is over: EXPIRED or CLOSED. `error`: what requests without an answer fail with."""
        self._disarm()
        link, self._link = self._link, None
        self._change(state)
        self._refusal = errors.SessionExpired if state is SessionState.EXPIRED else errors.SessionClosed
        if link is not None:
            link.leave_as_client()
        self._transport.forget(self)
        if state is SessionState.EXPIRED:
            self.events.put(SessionEvent(SessionEventKind.EXPIRED, self.session_id))
        self._fail_pending(error)
        if self._watches is not None:
            self._watches.fail(self._refusal, self.session_id)
        if self._closing is not None:
            self._closing.set(None)

    def _fail_pending(self, error: type[errors.ZooKeeperError]) -> None:
        """Fail what is pending now, not what callbacks ask for meanwhile."""
        pending, self._pending = self._pending, {}
        for request, future in pending.values():
            future.fail(self._error(error, request.operation, self._chroot.to_client(request.path)))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {session_text(self.session_id)}: {self.state.value}>"


def most_bytes(request: Request) -> int:
    """A bound of the length of a request, which is cheaper than to encode it."""
    most = _FIXED_BYTES
    for part in request.writes or (request,):
        most += _FIXED_BYTES + _CHARACTER_BYTES * len(part.path) + len(getattr(part, "data", b""))
    return most
