"""The client's end: one simulated session, behaving as Kafka's Java client (3.9) does."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol, cast

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
    WatchKind,
    WriteOperation,
    WriteResult,
)
from rebalance_lab.world.simulated.link import Link
from rebalance_lab.world.simulated.messages import (
    PING,
    Answer,
    Connect,
    Connected,
    Found,
    Operation,
    Rearm,
    Refusal,
    Request,
    ToClient,
)
from rebalance_lab.world.simulated.sizes import REQUEST_LIMIT_BYTES, request_bytes

#: Unread session events. A session that reconnects makes two; its reader would be long gone.
EVENTS_LIMIT = 10_000


class Host(Protocol):
    """What a session needs of the process it lives in (`endpoint.Endpoint`)."""

    kernel: Kernel
    process: Process
    name: str

    def reconnect_wait_us(self) -> int: ...
    def connect(self, session: SimulatedSession, message: Connect) -> Link: ...
    def forget(self, session: SimulatedSession) -> None: ...


class SimulatedSession:
    """The port `world.ports.ZooKeeper`, and one end of a link (`link.ClientEnd`)."""

    __slots__ = (
        "_asked_timeout_ms",
        "_child",
        "_closing",
        "_data",
        "_exist",
        "_host",
        "_link",
        "_pending",
        "_timer",
        "_xid",
        "_zxid",
        "events",
        "negotiated_timeout_ms",
        "session_id",
        "state",
    )

    def __init__(self, host: Host, session_timeout_ms: int) -> None:
        self.session_id = 0
        self.state = SessionState.CONNECTING
        self.negotiated_timeout_ms = 0
        self.events: Mailbox[SessionEvent] = Mailbox(f"session events of {host.name}", EVENTS_LIMIT)
        self._host = host
        self._asked_timeout_ms = session_timeout_ms
        self._zxid = 0
        self._xid = 0
        self._pending: deque[tuple[Request, Future[Any]]] = deque()
        self._data: dict[str, Future[WatchEvent]] = {}
        self._exist: dict[str, Future[WatchEvent]] = {}
        self._child: dict[str, Future[WatchEvent]] = {}
        self._closing: Future[None] | None = None
        self._timer: Any = None
        self._link: Link | None = None
        self._connect()

    # -- operations -------------------------------------------------------------------------

    def create(self, path: str, data: bytes, *, ephemeral: bool = False, sequence: bool = False) -> Future[Reply[str]]:
        return self._ask(Operation.CREATE, path, data=data, ephemeral=ephemeral, sequence=sequence)

    def get(self, path: str, *, watch: bool = False) -> Future[Reply[Node]]:
        return self._ask(Operation.GET, path, watch=watch)

    def children(self, path: str, *, watch: bool = False) -> Future[Reply[Children]]:
        return self._ask(Operation.CHILDREN, path, watch=watch)

    def exists(self, path: str, *, watch: bool = False) -> Future[Reply[Stat | None]]:
        return self._ask(Operation.EXISTS, path, watch=watch)

    def set(self, path: str, data: bytes, *, version: int = -1) -> Future[Reply[Stat]]:
        return self._ask(Operation.SET, path, data=data, version=version)

    def delete(self, path: str, *, version: int = -1) -> Future[Reply[None]]:
        return self._ask(Operation.DELETE, path, version=version)

    def multi(self, operations: Sequence[WriteOperation]) -> Future[Reply[tuple[WriteResult, ...]]]:
        return self._ask(Operation.MULTI, _first(operations), writes=tuple(operations))

    def multi_read(self, reads: Sequence[ReadOperation]) -> Future[Reply[tuple[ReadResult, ...]]]:
        return self._ask(Operation.MULTI_READ, _first(reads), reads=tuple(reads))

    def close(self) -> Future[None]:
        """As the port says. Without a connection, or a try at one, the server is not told, and
        the session lives there until it expires (ClientCnxn does not connect only to close)."""
        if self._closing is None:
            if self.state is SessionState.EXPIRED:
                self._closing = Future("close")
                self._closing.set(None)
                return self._closing
            if self._link is not None:
                self._ask(Operation.CLOSE, "")
            self._closing = Future(("close of session", f"{self.session_id:#x}"))
            if self._link is None:
                self._end(SessionState.CLOSED, errors.SessionClosed)
        return self._closing

    @staticmethod
    def _empty_path(operation: Operation, path: str, fields: dict[str, Any]) -> bool:
        if operation is Operation.MULTI or operation is Operation.MULTI_READ:
            return any(not each.path for each in (*fields.get("writes", ()), *fields.get("reads", ())))
        return not path and operation is not Operation.CLOSE

    def _ask(self, operation: Operation, path: str, **fields: Any) -> Future[Reply[Any]]:
        future: Future[Reply[Any]] = Future(("reply to", operation.name, path, "asked by", self._host.name))
        if self.state is SessionState.EXPIRED:
            future.fail(self._error(errors.SessionExpired, operation, path))
        elif self._closing is not None:
            future.fail(self._error(errors.SessionClosed, operation, path))
        elif self._empty_path(operation, path, fields):  # the wire has no empty string
            future.fail(self._error(errors.BadArguments, operation, path))
        else:
            request = Request(self._xid + 1, operation, path, **fields)
            if request_bytes(request) > REQUEST_LIMIT_BYTES:
                future.fail(self._error(errors.RequestTooLarge, operation, path))
                return future
            self._xid += 1
            self._pending.append((request, future))
            if self.state is SessionState.CONNECTED and self._link is not None:
                self._link.to_server(request)
        return future

    def _error(self, kind: type[errors.ZooKeeperError], operation: Operation, path: str) -> errors.ZooKeeperError:
        return kind(operation.name.lower(), path, session_id=self.session_id)

    # -- connecting -------------------------------------------------------------------------

    def _connect(self) -> None:
        self._timer = None
        self._link = self._host.connect(self, Connect(self.session_id, self._asked_timeout_ms))

    def limit_attempt(self) -> None:
        """The connection attempt hangs: give it up after the connect timeout, which is the whole
        session timeout with one server."""
        host = self._host
        timeout_ms = self.negotiated_timeout_ms or self._asked_timeout_ms
        due_us = host.kernel.now_us() + timeout_ms * 1000
        self._timer = host.kernel.call_at(due_us, self.drop_connection, process=host.process)

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
        host = self._host
        due_us = host.kernel.now_us() + host.reconnect_wait_us()
        self._timer = host.kernel.call_at(due_us, self._connect, process=host.process)
        if was_connected:
            self.events.put(SessionEvent(SessionEventKind.DISCONNECTED, self.session_id))

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def woke(self, silent_since_us: int) -> None:
        """The process goes on after a pause, and has read its mail. As ClientCnxn: nothing heard
        for two thirds of the session timeout ends the connection; otherwise a ping is due."""
        link = self._link
        if link is None or self.state is not SessionState.CONNECTED:
            return
        quiet_us = self._host.kernel.now_us() - silent_since_us
        heard = link.mail_waited
        link.mail_waited = False
        if not heard and quiet_us * 3 > self.negotiated_timeout_ms * 1000 * 2:
            self.drop_connection()
        else:
            link.to_server(PING)

    # -- what arrives -----------------------------------------------------------------------

    def arrived(self, link: Link, message: ToClient) -> None:
        assert link is self._link, "mail from a connection that was given up"
        if isinstance(message, Answer):
            self._answered(message)
        elif isinstance(message, Connected):
            self._connected(link, message)
        else:
            self._fired(message.kind, message.path)

    def _connected(self, link: Link, message: Connected) -> None:
        self._disarm()
        if message.timeout_ms == 0:
            self._end(SessionState.EXPIRED, errors.SessionExpired)
            return
        self.session_id = message.session_id
        self.negotiated_timeout_ms = message.timeout_ms
        self._change(SessionState.CONNECTED)
        if self._data or self._exist or self._child:
            rearm = Rearm(self._zxid, tuple(self._data), tuple(self._exist), tuple(self._child))
            self._xid += 1
            request = Request(self._xid, Operation.SET_WATCHES, "", rearm=rearm)
            self._pending.appendleft((request, Future("set watches")))
        for request, _ in self._pending:
            link.to_server(request)
        self.events.put(SessionEvent(SessionEventKind.CONNECTED, self.session_id))

    def _answered(self, answer: Answer) -> None:
        request, future = self._pending.popleft()
        assert request.xid == answer.xid, f"answer {answer.xid} came for request {request.xid}"
        self._zxid = answer.zxid
        operation = request.operation
        if operation is Operation.CLOSE:
            self._link = None
            self._end(SessionState.CLOSED, errors.SessionClosed)
            return
        missing = answer.code == errors.NoNode.code and operation is Operation.EXISTS
        if answer.code != 0 and not missing:
            future.fail(self._failure(request, answer))
            return
        value: object = answer.value
        if operation is Operation.MULTI_READ:
            value = self._found(request.reads, answer)
        watch = self._watch(operation, request.path, missing) if request.watch else None
        future.set(Reply(value, answer.zxid, watch))

    def _failure(self, request: Request, answer: Answer) -> errors.ZooKeeperError:
        if isinstance(answer.value, Refusal):
            index = answer.value.index
            refused = request.writes[index]
            return errors.MultiRefused(index, self._reason(answer.code, _name(refused), refused.path, answer.zxid))
        return self._reason(answer.code, request.operation.name.lower(), request.path, answer.zxid)

    def _found(self, reads: tuple[ReadOperation, ...], answer: Answer) -> tuple[ReadResult, ...]:
        """The results of a multi-read, with errors for its codes."""
        return tuple(
            self._reason(each, _name(read), read.path, answer.zxid) if isinstance(each, int) else each
            for read, each in zip(reads, cast(tuple[Found, ...], answer.value), strict=True)
        )

    def _reason(self, code: int, name: str, path: str, zxid: int) -> errors.ZooKeeperError:
        return errors.error_for(code, name, path, zxid=zxid, session_id=self.session_id)

    # -- watches ----------------------------------------------------------------------------

    def _watch(self, operation: Operation, path: str, missing: bool) -> Future[WatchEvent]:
        """The watch of a table and path: one, however many ask for it."""
        table = self._exist if missing else self._child if operation is Operation.CHILDREN else self._data
        watch = table.get(path)
        if watch is None:
            watch = table[path] = Future(("watch on", path, "of", self._host.name))
        return watch

    def _fired(self, kind: WatchKind, path: str) -> None:
        event = WatchEvent(kind, path, self._zxid)
        for table in self._tables(kind):
            watch = table.pop(path, None)
            if watch is not None:
                watch.set(event)

    def _tables(self, kind: WatchKind) -> tuple[dict[str, Future[WatchEvent]], ...]:
        """Which watches an event ends (ZKWatchManager.materialize)."""
        if kind is WatchKind.CHILD:
            return (self._child,)
        if kind is WatchKind.DELETED:
            return (self._data, self._exist, self._child)
        return (self._data, self._exist)

    # -- ends -------------------------------------------------------------------------------

    def _change(self, new: SessionState) -> None:
        assert new in SESSION_TRANSITIONS[self.state], f"a session {self.state.value} cannot become {new.value}"
        self.state = new

    def _end(self, state: SessionState, error: type[errors.ZooKeeperError]) -> None:
        """The session is over: EXPIRED or CLOSED."""
        self._disarm()
        self._link = None
        self._change(state)
        self._host.forget(self)
        if state is SessionState.EXPIRED:
            self.events.put(SessionEvent(SessionEventKind.EXPIRED, self.session_id))
        self._fail_pending(error)
        for table in (self._data, self._exist, self._child):
            watches = list(table.items())
            table.clear()
            for path, watch in watches:
                watch.fail(error("watch", path, session_id=self.session_id))
        if self._closing is not None:
            self._closing.set(None)

    def _fail_pending(self, error: type[errors.ZooKeeperError]) -> None:
        pending, self._pending = self._pending, deque()
        for request, future in pending:
            future.fail(self._error(error, request.operation, request.path))


def _first(operations: Sequence[WriteOperation] | Sequence[ReadOperation]) -> str:
    """The path that messages name for many operations."""
    return operations[0].path if operations else ""


def _name(operation: WriteOperation | ReadOperation) -> str:
    """What a message calls one operation of many: `create`, `get`."""
    return type(operation).__name__.removesuffix("Read").lower()
