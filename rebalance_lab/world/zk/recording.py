"""Sessions that are recorded: around the sessions of any world.

`RecordedSession` records each operation as a pair: INVOKED, then OK, FAILED_OP (definite: it was not done) or INFO
(unknown: the connection was lost). Each event becomes the kernel's stimulus for what it wakes, so that later events
name it as their cause. INVOKED of a multi or multi-read has the detail `parts` ([[operation, path], …]) and an empty
path. A multi that was refused has `index` and `reason`.

`CountedSession` only counts operations, for large trials: an event for each would be most of the history and of the
time. Fired watches, session events and the close are rare, and recorded as in `RecordedSession`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from rebalance_lab.history.events import EventId, Kind, Layer
from rebalance_lab.kernel import Future, Kernel, Mailbox, Timer
from rebalance_lab.world.errors import ConnectionLoss, MultiRefused, ZooKeeperError
from rebalance_lab.world.ports import (
    Children,
    Node,
    ReadOperation,
    ReadResult,
    RecorderPort,
    Reply,
    SessionEvent,
    SessionEventKind,
    SessionState,
    Stat,
    WatchEvent,
    WriteOperation,
    WriteResult,
    ZooKeeper,
    ZooKeeperFactory,
)
from rebalance_lab.world.zk.answers import name_of

T = TypeVar("T")

#: What is recorded of operations: each of them, or their numbers.
ALL = "all"
COUNTS = "counts"

#: The time from the first operation that is not yet in an OPERATIONS event until that event.
FLUSH_AFTER_US = 100_000

_COUNTED = ("get", "children", "exists", "create", "set", "delete", "multi", "multi_read", "reads")

#: The consumer id that events carry; None: they carry none.
MemberOf = Callable[[], str | None]

#: The operations of a multi or multi-read.
Parts = Sequence[WriteOperation] | Sequence[ReadOperation]

_SESSION_KINDS = {
    SessionEventKind.CONNECTED: Kind.CONNECTED,
    SessionEventKind.DISCONNECTED: Kind.DISCONNECTED,
    SessionEventKind.EXPIRED: Kind.EXPIRED,
}


class RecordedSession:
    """The port `ZooKeeper` around another session. Its futures complete right after their event is recorded, in the
    order of the inner ones."""

    def __init__(self, inner: ZooKeeper, recorder: RecorderPort, tasks: Kernel, member_of: MemberOf) -> None:
        self.events: Mailbox[SessionEvent] = Mailbox(inner.events.name, inner.events.limit)
        self._inner = inner
        self._recorder = recorder
        self._tasks = tasks
        self._member_of = member_of
        #: Watch of the inner session -> ours, while it is armed. Looked up only, never iterated.
        self._watches: dict[Future[WatchEvent], Future[WatchEvent]] = {}
        self._last_fired: WatchEvent | None = None
        self._last_fired_id: EventId | None = None
        inner.events.readable().on(self._events_readable)

    @property
    def session_id(self) -> int:
        return self._inner.session_id

    @property
    def state(self) -> SessionState:
        return self._inner.state

    @property
    def negotiated_timeout_ms(self) -> int:
        return self._inner.negotiated_timeout_ms

    # -- operations -------------------------------------------------------------------------

    def create(self, path: str, data: bytes, *, ephemeral: bool = False, sequence: bool = False) -> Future[Reply[str]]:
        return self._asked(
            "create", path, partial(self._inner.create, path, data, ephemeral=ephemeral, sequence=sequence)
        )

    def get(self, path: str, *, watch: bool = False) -> Future[Reply[Node]]:
        return self._asked("get", path, partial(self._inner.get, path, watch=watch), watch=watch)

    def children(self, path: str, *, watch: bool = False) -> Future[Reply[Children]]:
        return self._asked("children", path, partial(self._inner.children, path, watch=watch), watch=watch)

    def exists(self, path: str, *, watch: bool = False) -> Future[Reply[Stat | None]]:
        return self._asked("exists", path, partial(self._inner.exists, path, watch=watch), watch=watch)

    def set(self, path: str, data: bytes, *, version: int = -1) -> Future[Reply[Stat]]:
        return self._asked("set", path, partial(self._inner.set, path, data, version=version))

    def delete(self, path: str, *, version: int = -1) -> Future[Reply[None]]:
        return self._asked("delete", path, partial(self._inner.delete, path, version=version))

    def multi(self, operations: Sequence[WriteOperation]) -> Future[Reply[tuple[WriteResult, ...]]]:
        return self._asked("multi", "", partial(self._inner.multi, operations), parts=operations)

    def multi_read(self, reads: Sequence[ReadOperation]) -> Future[Reply[tuple[ReadResult, ...]]]:
        return self._asked("multi_read", "", partial(self._inner.multi_read, reads), parts=reads)

    def close(self) -> Future[None]:
        detail: dict[str, object] = {"op": "close", "path": ""}
        invoked = self._emit(Kind.INVOKED, None, detail)
        outer: Future[None] = Future("close")

        def done(_closed: Future[None]) -> None:
            self._record(Kind.OK, invoked, None, {**detail, "of": invoked[1]}, partial(outer.set, None))

        self._inner.close().on(done)
        return outer

    # -- recording --------------------------------------------------------------------------

    def _asked(
        self,
        operation: str,
        path: str,
        ask: Callable[[], Future[Reply[T]]],
        *,
        watch: bool = False,
        parts: Parts | None = None,
    ) -> Future[Reply[T]]:
        """Record an operation and its reply. `ask` asks the inner session for it."""
        asked: dict[str, object] = {"op": operation, "path": path}
        if watch:
            asked["watch"] = True
        if parts is not None:
            asked["parts"] = [[name_of(each), each.path] for each in parts]
        invoked = self._emit(Kind.INVOKED, None, asked)
        inner = ask()
        outer: Future[Reply[T]] = Future(inner.label)

        def done(reply: Future[Reply[T]]) -> None:
            error = reply.error
            detail: dict[str, object] = {"op": operation, "path": path, "of": invoked[1]}
            if error is None:
                value = self._watched(reply.result())
                self._record(Kind.OK, invoked, value.zxid, detail, partial(outer.set, value))
                return
            detail["error"] = type(error).__name__
            if isinstance(error, MultiRefused):
                detail["index"], detail["reason"] = error.index, type(error.reason).__name__
            kind = Kind.INFO if isinstance(error, ConnectionLoss) else Kind.FAILED_OP
            zxid = error.zxid if isinstance(error, ZooKeeperError) and error.zxid >= 0 else None
            self._record(kind, invoked, zxid, detail, partial(outer.fail, error))

        inner.on(done)
        return outer

    def _record(
        self, kind: Kind, cause: EventId, zxid: int | None, detail: dict[str, object], complete: Callable[[], Any]
    ) -> None:
        """Emit an event caused by `cause`, and complete a future with the event as the reason."""
        tasks = self._tasks
        before = tasks.cause
        tasks.cause = cause
        try:
            tasks.cause = self._emit(kind, zxid, detail)
            complete()
        finally:
            tasks.cause = before

    def _emit(self, kind: Kind, zxid: int | None, detail: dict[str, object] | None) -> EventId:
        session_id = self._inner.session_id
        return self._recorder.emit(
            Layer.OP, kind, member=self._member_of(), session=session_id or None, zxid=zxid, detail=detail
        )

    # -- watches ----------------------------------------------------------------------------

    def _watched(self, reply: Reply[T]) -> Reply[T]:
        inner = reply.watch
        if inner is None:
            return reply
        outer = self._watches.get(inner)
        if outer is None:
            outer = self._watches[inner] = Future(inner.label)
            inner.on(self._watch_done)
        return Reply(reply.value, reply.zxid, outer)

    def _watch_done(self, inner: Future[WatchEvent]) -> None:
        outer = self._watches.pop(inner)
        if inner.error is not None:
            outer.fail(inner.error)
            return
        event = inner.result()
        if event is not self._last_fired:  # a deletion ends a data and a child watch with one event
            self._last_fired = event
            detail: dict[str, object] = {"path": event.path, "event": event.kind.name.lower()}
            self._last_fired_id = self._emit(Kind.WATCH_FIRED, event.zxid, detail)
        self._tasks.stimulated(self._last_fired_id, partial(outer.set, event))

    # -- session events ---------------------------------------------------------------------

    def _events_readable(self, _readable: Future[None]) -> None:
        while (event := self._inner.events.take()) is not None:
            self._session_event(event)
        self._inner.events.readable().on(self._events_readable)

    def _session_event(self, event: SessionEvent) -> None:
        event_id = self._recorder.emit(
            Layer.OP, _SESSION_KINDS[event.kind], member=self._member_of(), session=event.session_id
        )
        self._tasks.stimulated(event_id, partial(self.events.put, event))


class CountedSession(RecordedSession):
    """The port `ZooKeeper` around another session. Its futures are the inner session's, except those of reads that set
    a watch, which is recorded.

    A task that waits for an answer goes on with the cause that it asked with: an answer has no event that could be one.
    """

    def __init__(self, inner: ZooKeeper, recorder: RecorderPort, tasks: Kernel, member_of: MemberOf) -> None:
        super().__init__(inner, recorder, tasks, member_of)
        self._counts = dict.fromkeys(_COUNTED, 0)
        self._failed = 0
        self._unknown = 0
        self._since_us = 0
        self._timer: Timer | None = None
        self._over = False
        self._on_end = self._ended

    # -- operations -------------------------------------------------------------------------

    def _asked(
        self,
        operation: str,
        _path: str,
        ask: Callable[[], Future[Reply[T]]],
        *,
        watch: bool = False,
        parts: Parts | None = None,
    ) -> Future[Reply[T]]:
        if parts is not None and operation == "multi_read":
            self._counts["reads"] += len(parts)
        reply = ask()
        if self._timer is None:
            self._arm()
        self._counts[operation] += 1
        reply.cause = self._tasks.cause
        reply.on(self._on_end)
        return self._ours(reply) if watch else reply

    def close(self) -> Future[None]:
        """Counts that wait are recorded before the close, which is recorded like any other, and what failed by it right
        after it. Nothing is recorded later: the process that closes may end, and its recorder with it."""
        self._flush()
        closed = super().close()
        closed.on(self._end)
        return closed

    # -- counting ---------------------------------------------------------------------------

    def _ended(self, reply: Future[Any]) -> None:
        error = reply.error
        if error is None:
            return
        if self._timer is None:
            self._arm()
        if isinstance(error, ConnectionLoss):
            self._unknown += 1
        else:
            self._failed += 1

    def _ours(self, inner: Future[Reply[T]]) -> Future[Reply[T]]:
        """The reply with a watch that is recorded when it fires."""
        outer: Future[Reply[T]] = Future(inner.label)
        outer.cause = inner.cause

        def done(reply: Future[Reply[T]]) -> None:
            if reply.error is None:
                outer.set(self._watched(reply.result()))
            else:
                outer.fail(reply.error)

        inner.on(done)
        return outer

    def _arm(self) -> None:
        if self._over or self._tasks.closed:
            return
        # What fails with an expired session fails at once, and its member may end soon.
        later_us = 0 if self._inner.state is SessionState.EXPIRED else FLUSH_AFTER_US
        self._since_us = self._tasks.now_us()
        self._timer = self._tasks.call_at(self._since_us + later_us, self._flush)

    def _end(self, _closed: Future[None]) -> None:
        self._flush()
        self._over = True

    def _flush(self) -> None:
        """Record what was counted since the last time, if anything was."""
        timer, self._timer = self._timer, None
        if timer is None:
            return
        timer.cancel()
        counts = {name: count for name, count in self._counts.items() if count}
        detail: dict[str, object] = {
            "since_us": self._since_us,
            "counts": counts,
            "failed": self._failed,
            "unknown": self._unknown,
        }
        self._counts = dict.fromkeys(_COUNTED, 0)
        self._failed = self._unknown = 0
        self._recorder.emit(
            Layer.OP,
            Kind.OPERATIONS,
            member=self._member_of(),
            session=self._inner.session_id or None,
            detail=detail,
        )

    def _session_event(self, event: SessionEvent) -> None:
        if event.kind is SessionEventKind.EXPIRED:
            self._flush()
        super()._session_event(event)


class RecordingFactory:
    """The port `ZooKeeperFactory` around another.

    `member_of`: called for the consumer id of each event. `operations`: `all` records each operation, `counts` only
    their numbers. Raises ValueError for another word.
    """

    def __init__(
        self,
        inner: ZooKeeperFactory,
        recorder: RecorderPort,
        tasks: Kernel,
        member_of: MemberOf | None = None,
        *,
        operations: str = ALL,
    ) -> None:
        if operations not in (ALL, COUNTS):
            raise ValueError(f"operations={operations!r}: record {ALL} of them, or {COUNTS}")
        self._inner = inner
        self._recorder = recorder
        self._tasks = tasks
        self._member_of: MemberOf = member_of or (lambda: None)
        self._around = CountedSession if operations == COUNTS else RecordedSession

    def open(self, connect: str, session_timeout_ms: int) -> ZooKeeper:
        session = self._inner.open(connect, session_timeout_ms)
        return self._around(session, self._recorder, self._tasks, self._member_of)
