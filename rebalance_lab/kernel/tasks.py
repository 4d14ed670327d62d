"""Tasks: coroutines that the kernel runs, and how they are cancelled.

Cancelling is a *request*. Each request is delivered once, as `Cancelled`, at the next point where the task waits. So
`finally` blocks may await, and only a further request by another block interrupts them. Two rules differ from asyncio
on purpose:

- What was granted is delivered. A task whose future is complete gets the result, even if it is cancelled before it runs
  again, and even if the request came first. The request is raised at its next wait. (asyncio drops the reply, and with
  it a lock, a claim or an item.)
- A request keeps its origin and its reason, so that nested deadlines stay distinct.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from rebalance_lab.kernel.errors import Cancelled, CancelRequest, Disposed, TaskCancelled
from rebalance_lab.kernel.futures import Future

if TYPE_CHECKING:
    from rebalance_lab.kernel.kernel import Cause, Kernel
    from rebalance_lab.kernel.process import Process

T = TypeVar("T")

#: How often a parked coroutine may swallow Disposed before we give up on it.
DISPOSE_LIMIT = 100


class Task(Future[T]):
    """A running coroutine. As a future, it is the coroutine's result."""

    __slots__ = (
        "_cause",
        "_coroutine",
        "_granted",
        "_left",
        "_requests",
        "_shields",
        "_wake_callback",
        "cancelled",
        "kernel",
        "name",
        "process",
        "queued",
        "waiting_on",
    )

    def __init__(
        self, kernel: Kernel, coroutine: Coroutine[Any, Any, T], name: str, process: Process | None, cause: Cause
    ) -> None:
        super().__init__(label=("end of task", name))
        self.kernel = kernel
        self.name = name
        self.process = process
        self.queued = False
        self.cancelled = False
        self.waiting_on: Future[Any] | None = None
        self._coroutine = coroutine
        self._cause = cause
        self._granted = False
        self._left: Future[Any] | None = None
        self._requests: list[CancelRequest] = []
        self._shields: list[list[object]] = []
        self._wake_callback = self._wake

    # -- waking -----------------------------------------------------------------------------

    def _wake(self, future: Future[Any]) -> None:
        self.waiting_on = None
        self._granted = True
        self._cause = self.kernel.cause or future.cause
        self.kernel.ready(self)

    def step(self) -> None:
        """Run to the next wait. Only the kernel calls this."""
        kernel = self.kernel
        kernel.cause = self._cause
        request = self._due() if self._requests else None
        self._granted = False
        self._left = None
        try:
            if request is None:
                awaited = self._coroutine.send(None)
            else:
                request.delivered = True
                awaited = self._coroutine.throw(Cancelled(request))
        except StopIteration as stop:
            self.set(stop.value)
        except Cancelled as cancelled:
            self.cancelled = True
            self.fail(TaskCancelled(self.name, cancelled.reason))
        except Exception as error:
            self.fail(error)
        else:
            if self._requests or not isinstance(awaited, Future):
                self._wait_for(awaited)
            else:
                self.waiting_on = awaited
                awaited.on(self._wake_callback)

    def _wait_for(self, awaited: object) -> None:
        if not isinstance(awaited, Future):
            error = TypeError(f"task {self.name} awaited {awaited!r}: only futures of the kernel can be awaited")
            self._coroutine.close()
            self.fail(error)
            return
        if self._requests and self._undelivered() is not None:
            self._left = awaited
            self.kernel.ready(self)
            return
        self.waiting_on = awaited
        awaited.on(self._wake_callback)

    # -- cancelling -------------------------------------------------------------------------

    def cancel(self, reason: str, origin: object = None) -> None:
        """Ask the task to stop. A second request of the same origin has no effect."""
        if self.done or any(request.origin is origin for request in self._requests):
            return
        request = CancelRequest(origin, reason)
        self._requests.append(request)
        if self.waiting_on is not None and self._reaches(request):
            self._left = self.waiting_on  # it may still be granted before the task runs
            self.waiting_on.off(self._wake_callback)
            self.waiting_on = None
            self._cause = self.kernel.cause
            self.kernel.ready(self)

    def _due(self) -> CancelRequest | None:
        """The request that the task gets in this step; None if it was granted what it waited for."""
        granted = self._granted or (self._left is not None and self._left.done)
        return None if granted else self._undelivered()

    def _undelivered(self) -> CancelRequest | None:
        return next((each for each in self._requests if not each.delivered and self._reaches(each)), None)

    def _reaches(self, request: CancelRequest) -> bool:
        """Whether a request passes the task's shields. A shield delays requests from outside, not from blocks opened
        inside it."""
        return not self._shields or any(request.origin is block for block in self._shields[-1])

    def enter(self, block: object) -> None:
        """Note the beginning of a block that may ask this task to stop."""
        if self._shields:
            self._shields[-1].append(block)

    def leave(self, block: object) -> CancelRequest | None:
        """Note the end of the block: withdraw its request, and return it if there was one."""
        if self._shields:
            self._shields[-1].remove(block)
        for index, request in enumerate(self._requests):
            if request.origin is block:
                return self._requests.pop(index)
        return None

    def obeyed(self) -> list[CancelRequest]:
        """The requests for which the task is already unwinding, the oldest first. Blocks that ended have withdrawn
        theirs, so each belongs to a block that is still open, or to no block."""
        return [request for request in self._requests if request.delivered]

    def raise_shield(self) -> None:
        self._shields.append([])

    def lower_shield(self) -> None:
        self._shields.pop()

    # -- end --------------------------------------------------------------------------------

    def dispose(self) -> None:
        """Unwind a task that will never run again, so that no coroutine is left unfinished."""
        if self.waiting_on is not None:
            self.waiting_on.off(self._wake_callback)
            self.waiting_on = None
        for _ in range(DISPOSE_LIMIT):
            try:
                self._coroutine.throw(Disposed())
            except (StopIteration, BaseException):
                break
        else:
            raise RuntimeError(f"task {self.name} swallowed Disposed {DISPOSE_LIMIT} times; let it pass")
        self.cancelled = True
        self.fail(TaskCancelled(self.name, "the kernel was closed"))

    def __repr__(self) -> str:
        return f"<Task {self.name}: {'done' if self.done else self.waiting_on or 'ready'}>"
