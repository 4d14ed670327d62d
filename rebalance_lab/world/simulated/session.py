"""The client's end: one simulated session. It behaves as `live.session` does: as ClientCnxn of
ZooKeeper 3.4.6, the client of Kafka 0.8.2.2, which never ends a session by itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

from rebalance_lab.kernel import Future, Kernel, Mailbox, Process
from rebalance_lab.world import errors
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
    WriteOperation,
    WriteResult,
)
from rebalance_lab.world.simulated import calls
from rebalance_lab.world.simulated.heartbeat import Heartbeat
from rebalance_lab.world.simulated.link import Link, ServerEnd
from rebalance_lab.world.simulated.messages import (
    PING,
    Answer,
    Connect,
    Connected,
    Fired,
    Operation,
    Rearm,
    Request,
    ToClient,
)
from rebalance_lab.world.simulated.sizes import REQUEST_LIMIT_BYTES, request_bytes
from rebalance_lab.world.zk.connect_string import Chroot
from rebalance_lab.world.zk.server_list import ServerList
from rebalance_lab.world.zk.watches import ClientWatches

#: Unread session events. A session that reconnects makes two; its reader would be long gone.
EVENTS_LIMIT = 10_000

#: A path or data this short cannot make a request too long, whatever its characters.
_SHORT = 100_000

_LABELS = {operation: f"reply to {operation.name}" for operation in Operation}

# What each operation asks for: Python 3.11 looks up the members of an enumeration slowly.
_CONNECTED = SessionState.CONNECTED
_CLOSE = Operation.CLOSE
_EXISTS = Operation.EXISTS
_CHILDREN = Operation.CHILDREN
_NO_NODE = errors.NoNode.code


class Host(Protocol):
    """What a session needs of the process it lives in (`endpoint.Endpoint`)."""

    kernel: Kernel
    process: Process
    name: str

    def connect(self, session: SimulatedSession, server: ServerEnd, message: Connect) -> Link: ...
    def forget(self, session: SimulatedSession) -> None: ...

    @property
    def cut(self) -> bool:
        """Something is cut between this process and the servers."""
        ...


class SimulatedSession:
    """The port `world.ports.ZooKeeper`, and one end of a link (`link.ClientEnd`)."""

    __slots__ = (
        "_asked_timeout_ms",
        "_chroot",
        "_closing",
        "_dialed_us",
        "_heartbeat",
        "_host",
        "_link",
        "_pending",
        "_refusal",
        "_server_list",
        "_timer",
        "_watches",
        "_xid",
        "_zxid",
        "events",
        "negotiated_timeout_ms",
        "session_id",
        "state",
    )

    def __init__(self, host: Host, server_list: ServerList[ServerEnd], chroot: Chroot, session_timeout_ms: int) -> None:
        self.session_id = 0
        self.state = SessionState.CONNECTING
        self.negotiated_timeout_ms = 0
        self.events: Mailbox[SessionEvent] = Mailbox(f"session events of {host.name}", EVENTS_LIMIT)
        self._host = host
        self._server_list = server_list
        self._chroot = chroot
        self._asked_timeout_ms = session_timeout_ms
        self._zxid = 0
        self._xid = 0
        self._pending: list[tuple[Request, Future[Any]]] = []  # short, and small while empty
        self._watches: ClientWatches | None = None  # made when first needed: most sessions of 100,000 have none
        self._closing: Future[None] | None = None
        self._refusal: type[errors.ZooKeeperError] | None = None  # of all operations, once it ends
        self._timer: Any = None
        self._heartbeat: Heartbeat | None = None
        self._link: Link | None = None
        self._dialed_us = 0
        server, _ = server_list.next()  # before the first attempt there is no wait
        self._connect(server)

    # -- operations -------------------------------------------------------------------------

    def create(self, path: str, data: bytes, *, ephemeral: bool = False, sequence: bool = False) -> Future[Reply[str]]:
        return self._ask(Operation.CREATE, path, data=data, ephemeral=ephemeral, sequence=sequence)

    def get(self, path: str, *, watch: bool = False) -> Future[Reply[Node]]:
        return self._ask(Operation.GET, path, watch)

    def children(self, path: str, *, watch: bool = False) -> Future[Reply[Children]]:
        return self._ask(Operation.CHILDREN, path, watch)

    def exists(self, path: str, *, watch: bool = False) -> Future[Reply[Stat | None]]:
        return self._ask(Operation.EXISTS, path, watch)

    def set(self, path: str, data: bytes, *, version: int = -1) -> Future[Reply[Stat]]:
        return self._ask(Operation.SET, path, data=data, version=version)

    def delete(self, path: str, *, version: int = -1) -> Future[Reply[None]]:
        return self._ask(Operation.DELETE, path, version=version)

    def multi(self, operations: Sequence[WriteOperation]) -> Future[Reply[tuple[WriteResult, ...]]]:
        for index, operation in enumerate(operations):
            if not self._chroot.takes(operation.path):
                refused: Future[Reply[tuple[WriteResult, ...]]] = Future(("multi", operation.path))
                name = calls.name_of(operation)
                reason = errors.BadArguments(name, operation.path, session_id=self.session_id)
                refused.fail(errors.MultiRefused(index, reason))
                return refused
        path = operations[0].path if operations else "/"
        return self._ask(Operation.MULTI, path, writes=calls.at_server(self._chroot, operations))

    def multi_read(self, reads: Sequence[ReadOperation]) -> Future[Reply[tuple[ReadResult, ...]]]:
        path = next((each.path for each in reads if self._chroot.takes(each.path)), "/")
        return self._ask(Operation.MULTI_READ, path, reads=calls.at_server(self._chroot, reads))

    def close(self) -> Future[None]:
        """As the port says. Without a connection, or a try at one, the server is not told, and
        the session lives there until it expires (ClientCnxn does not connect only to close)."""
        if self._closing is None:
            if self.state is SessionState.EXPIRED:
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

    def _ask(self, operation: Operation, path: str, watch: bool = False, **fields: Any) -> Future[Reply[Any]]:
        future: Future[Reply[Any]] = Future((_LABELS[operation], path, "asked by", self._host.name))
        if self._refusal is not None:
            future.fail(self._error(self._refusal, operation, path))
        elif not self._chroot.takes(path):
            future.fail(self._error(errors.BadArguments, operation, path))
        else:
            request = Request(self._xid + 1, operation, self._chroot.to_server(path), watch, **fields)
            if (fields or len(path) > _SHORT) and self._too_long(request):
                future.fail(self._error(errors.RequestTooLarge, operation, path))
                return future
            self._xid += 1
            self._pending.append((request, future))
            if self.state is _CONNECTED and self._link is not None:
                self._link.to_server(request)
        return future

    @staticmethod
    def _too_long(request: Request) -> bool:
        """A real session sends a long multi-read as several requests; here it is one all the same."""
        return request.operation is not Operation.MULTI_READ and request_bytes(request) > REQUEST_LIMIT_BYTES

    def _error(self, kind: type[errors.ZooKeeperError], operation: Operation, path: str) -> errors.ZooKeeperError:
        return kind(operation.name.lower(), path, session_id=self.session_id)

    # -- connecting -------------------------------------------------------------------------

    def _connect(self, server: ServerEnd) -> None:
        self._timer = None
        self._dialed_us = self._host.kernel.now_us()
        self._link = self._host.connect(self, server, Connect(self.session_id, self._asked_timeout_ms, self._zxid))

    def limit_attempt(self) -> None:
        """The connection attempt may hang: give it up after the connect timeout."""
        if self._timer is None and self.state is SessionState.CONNECTING:
            host = self._host
            due_us = host.kernel.now_us() + self._connect_timeout_us
            self._timer = host.kernel.call_at(due_us, self.drop_connection, process=host.process)

    def opened(self, link: Link) -> None:
        """The TCP connection stands, late: the connect timeout begins anew, for the server's answer
        (ClientCnxnSocketNIO.doTransport after finishConnect)."""
        if link is self._link and self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._dialed_us = self._host.kernel.now_us()
            self.limit_attempt()

    @property
    def _connect_timeout_us(self) -> int:
        """The session timeout divided by the number of servers."""
        return (self.negotiated_timeout_ms or self._asked_timeout_ms) * 1000 // len(self._server_list.servers)

    def drop_connection(self) -> None:
        """Give the connection up from this side."""
        link = self._link
        if link is not None:
            link.leave_as_client()
            self.ended(link)

    def ended(self, link: Link) -> None:
        """The connection, or the try at one, is over."""
        if link is not self._link:
            return
        self._link = None
        self._disarm()
        was_connected = self.state is SessionState.CONNECTED
        if was_connected:
            self._change(SessionState.CONNECTING)
        self._fail_pending(errors.ConnectionLoss)
        if self._closing is not None:
            if self.state is not SessionState.CLOSED:  # a callback may have closed it just now
                self._end(SessionState.CLOSED, errors.SessionClosed)
            return
        if link.accepted:
            self._server_list.opened()
        host = self._host
        server, wait_us = self._server_list.next()
        due_us = host.kernel.now_us() + wait_us
        self._timer = host.kernel.call_at(due_us, partial(self._connect, server), process=host.process)
        if was_connected:
            self.events.put(SessionEvent(SessionEventKind.DISCONNECTED, self.session_id))

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._heartbeat is not None:
            self._heartbeat.stop()
            self._heartbeat = None

    def watch_silence(self, link: Link, heard_us: int) -> None:
        """As `link.ClientEnd` says; of an attempt too."""
        if link is not self._link:
            return
        if self.state is SessionState.CONNECTING:
            self.limit_attempt()
        elif self._heartbeat is None:
            self._heartbeat = Heartbeat(
                self._host.kernel, link, self.negotiated_timeout_ms, heard_us, self.drop_connection
            )

    def heard_us(self, at_server_us: int | None) -> int:
        """When the client last heard something by its connection, or began the try at one.
        `at_server_us`: when the server last heard the client; None where it has no such session."""
        if self.state is not SessionState.CONNECTED:
            return self._dialed_us
        if self._heartbeat is not None:
            return self._heartbeat.heard_us()
        return self._host.kernel.now_us() if at_server_us is None else at_server_us

    def woke(self, heard_us: int) -> None:
        """The process goes on after a pause and has not read its mail yet; `heard_us`: as the method
        says, at the pause. A client that was silent for the read timeout (two thirds of the session
        timeout; the connect timeout of a try) gives the connection up and loses the mail. In
        ClientCnxn (SendThread.run of 3.4.6 and 3.9.3) the first turn after a pause reads no more than
        the length of a frame (ClientCnxnSocketNIO.doIO), and the next one finds the silence."""
        connected = self.state is SessionState.CONNECTED
        limit_us = self.negotiated_timeout_ms * 2000 // 3 if connected else self._connect_timeout_us
        if self._host.kernel.now_us() - heard_us >= limit_us:
            self.drop_connection()

    def ping(self) -> None:
        """One is due after a pause, when the mail has been read."""
        if self._link is not None and self.state is SessionState.CONNECTED:
            self._link.to_server(PING)

    # -- what arrives -----------------------------------------------------------------------

    def arrived(self, link: Link, message: ToClient) -> None:
        if link is not self._link:  # read by nobody: the client woke and gave the connection up
            return
        if isinstance(message, Answer):
            self._answered(message)
        elif isinstance(message, Connected):
            self._connected(link, message)
        elif isinstance(message, Fired):
            if self._watches is not None:
                self._watches.fire(WatchEvent(message.kind, self._chroot.to_client(message.path), self._zxid))
        elif self._heartbeat is not None and not self._host.cut:  # all is well again
            self._heartbeat.stop()
            self._heartbeat = None

    def _connected(self, link: Link, message: Connected) -> None:
        self._disarm()
        if message.timeout_ms == 0:
            self._end(SessionState.EXPIRED, errors.SessionExpired)
            return
        self._server_list.established()
        self.session_id = message.session_id
        self.negotiated_timeout_ms = message.timeout_ms
        self._change(SessionState.CONNECTED)
        if self._watches:
            self._pending.insert(0, (self._rearming(self._watches), Future("set watches")))
        for request, _ in self._pending:
            link.to_server(request)
        self.events.put(SessionEvent(SessionEventKind.CONNECTED, self.session_id))

    def _rearming(self, watches: ClientWatches) -> Request:
        """SetWatches, in one request as 3.4.6 sends it. On a real server it is split, as 3.9.3 does it."""
        paths = (
            tuple([self._chroot.to_server(path) for path in table])
            for table in (watches.data, watches.exist, watches.child)
        )
        self._xid += 1
        return Request(self._xid, Operation.SET_WATCHES, "", rearm=Rearm(self._zxid, *paths))

    def _answered(self, answer: Answer) -> None:
        request, future = self._pending.pop(0)
        assert request.xid == answer.xid, f"answer {answer.xid} came for request {request.xid}"
        self._zxid = answer.zxid
        operation = request.operation
        if operation is _CLOSE:
            self._link = None
            self._end(SessionState.CLOSED, errors.SessionClosed)
            return
        missing = answer.code == _NO_NODE and operation is _EXISTS
        if answer.code != 0 and not missing:
            future.fail(calls.failure(self._chroot, request, answer, self.session_id))
            return
        watch = None
        if request.watch:
            if self._watches is None:
                self._watches = ClientWatches(self._host.name)
            path = self._chroot.to_client(request.path)
            watch = self._watches.add(path, children=operation is _CHILDREN, missing=missing)
        future.set(Reply(calls.value(self._chroot, request, answer, self.session_id), answer.zxid, watch))

    # -- ends -------------------------------------------------------------------------------

    def _change(self, new: SessionState) -> None:
        assert new in SESSION_TRANSITIONS[self.state], f"a session {self.state.value} cannot become {new.value}"
        self.state = new

    def _end(self, state: SessionState, error: type[errors.ZooKeeperError]) -> None:
        """The session is over: EXPIRED or CLOSED."""
        self._disarm()
        self._link = None
        self._change(state)
        self._refusal = error
        self._host.forget(self)
        if state is SessionState.EXPIRED:
            self.events.put(SessionEvent(SessionEventKind.EXPIRED, self.session_id))
        self._fail_pending(error)
        if self._watches is not None:
            self._watches.fail(error, self.session_id)
        if self._closing is not None:
            self._closing.set(None)

    def _fail_pending(self, error: type[errors.ZooKeeperError]) -> None:
        pending, self._pending = self._pending, []
        for request, future in pending:
            future.fail(self._error(error, request.operation, self._chroot.to_client(request.path)))
