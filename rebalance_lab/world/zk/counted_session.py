"""Sessions whose operations are counted: for large trials, where an event each would be most of
the history and most of the time.

Per operation nothing is made: no event, no detail, no future of its own. What is rare stays as
in `recorded`: session events, fired watches, the close.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.kernel import Future, Kernel, Timer
from rebalance_lab.world.errors import ConnectionLoss
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
    WriteOperation,
    WriteResult,
    ZooKeeper,
)
from rebalance_lab.world.zk.recorded_session import MemberOf, RecordedSession

T = TypeVar("T")

#: An OPERATIONS event follows so long after the first operation that the one before did not count.
FLUSH_AFTER_US = 100_000

_NAMES = ("get", "children", "exists", "create", "set", "delete", "multi", "multi_read", "reads")


class CountedSession(RecordedSession):
    """The port `ZooKeeper` around another session. Futures are those of the inner session, but
    for reads that set a watch: the watch is recorded, so it is ours.

    A task that waits for an answer goes on with the cause it asked with: there is no event of
    the answer that could be one.
    """

    def __init__(self, inner: ZooKeeper, recorder: RecorderPort, tasks: Kernel, member_of: MemberOf) -> None:
        super().__init__(inner, recorder, tasks, member_of)
        self._counts = dict.fromkeys(_NAMES, 0)
        self._failed = 0
        self._unknown = 0
        self._since_us = 0
        self._timer: Timer | None = None
        self._over = False
        self._on_end = self._ended

    # -- operations -------------------------------------------------------------------------

    def create(self, path: str, data: bytes, *, ephemeral: bool = False, sequence: bool = False) -> Future[Reply[str]]:
        return self._counted("create", self._inner.create(path, data, ephemeral=ephemeral, sequence=sequence))

    def get(self, path: str, *, watch: bool = False) -> Future[Reply[Node]]:
        reply = self._counted("get", self._inner.get(path, watch=watch))
        return self._ours(reply) if watch else reply

    def children(self, path: str, *, watch: bool = False) -> Future[Reply[Children]]:
        reply = self._counted("children", self._inner.children(path, watch=watch))
        return self._ours(reply) if watch else reply

    def exists(self, path: str, *, watch: bool = False) -> Future[Reply[Stat | None]]:
        reply = self._counted("exists", self._inner.exists(path, watch=watch))
        return self._ours(reply) if watch else reply

    def set(self, path: str, data: bytes, *, version: int = -1) -> Future[Reply[Stat]]:
        return self._counted("set", self._inner.set(path, data, version=version))

    def delete(self, path: str, *, version: int = -1) -> Future[Reply[None]]:
        return self._counted("delete", self._inner.delete(path, version=version))

    def multi(self, operations: Sequence[WriteOperation]) -> Future[Reply[tuple[WriteResult, ...]]]:
        return self._counted("multi", self._inner.multi(operations))

    def multi_read(self, reads: Sequence[ReadOperation]) -> Future[Reply[tuple[ReadResult, ...]]]:
        self._counts["reads"] += len(reads)
        return self._counted("multi_read", self._inner.multi_read(reads))

    def close(self) -> Future[None]:
        """Counts that wait are told before the close, which is recorded like any other; what it failed
        is told with it. After that nothing is: whoever closes may end, and its record with it."""
        self._flush()
        closed = super().close()
        closed.on(self._end)
        return closed

    # -- counting ---------------------------------------------------------------------------

    def _counted(self, operation: str, reply: Future[Reply[T]]) -> Future[Reply[T]]:
        if self._timer is None:
            self._arm()
        self._counts[operation] += 1
        reply.cause = self._tasks.cause
        reply.on(self._on_end)
        return reply

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
        """Tell what was counted since the last time, if anything was."""
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
        self._counts = dict.fromkeys(_NAMES, 0)
        self._failed = self._unknown = 0
        self._recorder.emit(
            Layer.OP,
            Kind.OPERATIONS,
            member=self._member_of(),
            session=self._inner.session_id or None,
            detail=detail,
        )

    def _told(self, event: SessionEvent) -> None:
        if event.kind is SessionEventKind.EXPIRED:
            self._flush()
        super()._told(event)
