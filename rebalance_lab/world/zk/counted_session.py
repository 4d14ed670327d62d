"""Sessions whose operations are counted, for large trials: an event for each would be most of the history and of the
time.

Fired watches, session events and the close are rare, and recorded as in `recorded_session`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.kernel import Future, Kernel, Timer
from rebalance_lab.world.errors import ConnectionLoss
from rebalance_lab.world.ports import (
    RecorderPort,
    Reply,
    SessionEvent,
    SessionEventKind,
    SessionState,
    ZooKeeper,
)
from rebalance_lab.world.zk.recorded_session import MemberOf, Parts, RecordedSession

T = TypeVar("T")

#: The time from the first operation that is not yet in an OPERATIONS event until that event.
FLUSH_AFTER_US = 100_000

_NAMES = ("get", "children", "exists", "create", "set", "delete", "multi", "multi_read", "reads")


class CountedSession(RecordedSession):
    """The port `ZooKeeper` around another session. Its futures are the inner session's, except those of reads that set
    a watch, which is recorded.

    A task that waits for an answer goes on with the cause that it asked with: an answer has no event that could be one.
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
        self._counts = dict.fromkeys(_NAMES, 0)
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
