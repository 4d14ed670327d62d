"""Scopes, deadlines and shields: blocks that limit what tasks do."""

from __future__ import annotations

from collections.abc import Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from rebalance_lab.kernel.errors import Cancelled, CancelRequest, TimedOut
from rebalance_lab.kernel.futures import Future
from rebalance_lab.kernel.tasks import Task

if TYPE_CHECKING:
    from rebalance_lab.kernel.kernel import Kernel
    from rebalance_lab.kernel.timers import Timer

T = TypeVar("T")


class Scope:
    """`async with tasks.scope(name) as scope: scope.spawn(...)`.

    The exit waits for every child. If a child fails, its siblings and the owner are cancelled, and the block raises the
    error of the first child that failed, unwrapped. If the block itself ends in an error or is cancelled, it cancels
    its children and waits for them.
    """

    def __init__(self, kernel: Kernel, name: str) -> None:
        self.name = name
        self._kernel = kernel
        self._owner: Task[Any] | None = None
        self._live: list[Task[Any]] = []
        self._idle: Future[None] | None = None
        self._error: BaseException | None = None
        self._closed = False

    async def __aenter__(self) -> Scope:
        self._owner = self._kernel.current
        self._owner.enter(self)
        return self

    def spawn(self, coroutine: Coroutine[Any, Any, T], name: str) -> Task[T]:
        """Start a child. Raises RuntimeError if the scope has ended."""
        if self._closed or self._owner is None:
            coroutine.close()
            raise RuntimeError(f"scope {self.name} is not open; cannot spawn {name}")
        task = self._kernel.spawn(coroutine, name, process=self._owner.process)
        self._live.append(task)
        task.on(self._child_done)
        if self._error is not None:
            task.cancel(f"scope {self.name} is failing", origin=self)
        return task

    def cancel(self, reason: str) -> None:
        """Cancel every child; the block itself goes on."""
        for task in list(self._live):
            task.cancel(reason, origin=self)

    def _child_done(self, task: Future[Any]) -> None:
        assert isinstance(task, Task)
        self._live.remove(task)
        error = task.error
        if error is not None and not task.cancelled and self._error is None:
            self._error = error
            self.cancel(f"sibling {task.name} failed")
            assert self._owner is not None, "spawn has looked"
            self._owner.cancel(f"child {task.name} failed", origin=self)
        if not self._live and self._idle is not None:
            self._idle.set(None)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        owner = self._owner
        assert owner is not None
        if error is not None:
            if not isinstance(error, Cancelled) and self._error is None:
                self._error = error
            self.cancel(f"scope {self.name} ended: {error}")
        interruption: Cancelled | None = None
        while self._live:
            self._idle = Future(("children of scope", self.name))
            try:
                await self._idle
            except Cancelled as cancelled:
                if cancelled.request.origin is not self:
                    interruption = cancelled
                self.cancel(cancelled.reason)
        self._closed = True
        owner.leave(self)
        if self._error is not None and self._error is not error:
            raise self._error
        if error is None and interruption is not None:
            raise interruption
        return False


class Deadline:
    """`async with tasks.timeout(us):` raises TimedOut if the block is still waiting then.

    A block that ends at the same instant is in time, and its result is kept.
    """

    def __init__(self, kernel: Kernel, timeout_us: int, name: str) -> None:
        self._kernel = kernel
        self._timeout_us = timeout_us
        self._name = name
        self._task: Task[Any] | None = None
        self._timer: Timer | None = None
        self._obeyed_before: list[CancelRequest] = []

    async def __aenter__(self) -> Deadline:
        self._task = self._kernel.current
        self._task.enter(self)
        self._obeyed_before = self._task.obeyed()
        self._timer = self._kernel.call_at(self._kernel.now_us() + self._timeout_us, self._fire)
        return self

    def _fire(self) -> None:
        assert self._task is not None
        self._task.cancel(f"deadline {self._name or self._timeout_us} passed", origin=self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        assert self._task is not None and self._timer is not None
        self._timer.cancel()
        request = self._task.leave(self)
        if request is not None and isinstance(error, Cancelled) and error.request is request:
            # A request from outside that came while the block ran goes first. A request that the task already obeys
            # does not: then this block is part of cleaning up, which goes on.
            outer = [each for each in self._task.obeyed() if each not in self._obeyed_before]
            if outer:
                raise Cancelled(outer[0]) from None
            raise TimedOut(self._timeout_us, self._name) from None
        return False


class Shield:
    """`async with tasks.shield():` delays cancel requests until the block has ended.

    Deadlines and scopes opened inside the block still work: only requests from outside wait.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._task: Task[Any] | None = None

    async def __aenter__(self) -> Shield:
        self._task = self._kernel.current
        self._task.raise_shield()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        assert self._task is not None
        self._task.lower_shield()
        return False
