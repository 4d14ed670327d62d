"""Lock, Flag and Mailbox. All are first come, first served, and safe to cancel: a waiter that is cancelled before its
turn leaves the queue, and a waiter whose turn has come keeps it."""

from __future__ import annotations

from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rebalance_lab.kernel.errors import MailboxFull
from rebalance_lab.kernel.futures import Future

if TYPE_CHECKING:
    from rebalance_lab.kernel.kernel import Kernel
    from rebalance_lab.kernel.tasks import Task

T = TypeVar("T")


class Lock:
    """`async with lock:` lets in one task at a time. It is not reentrant."""

    def __init__(self, kernel: Kernel, name: str) -> None:
        self.name = name
        self.holder: Task[Any] | None = None
        self._kernel = kernel
        self._waiters: deque[tuple[Future[None], Task[Any]]] = deque()

    async def __aenter__(self) -> Lock:
        task = self._kernel.current
        if self.holder is None:
            self.holder = task
            return self
        assert self.holder is not task, f"task {task.name} holds lock {self.name} already"
        waiter: tuple[Future[None], Task[Any]] = (Future(("lock", self.name, "held by", self.holder.name)), task)
        self._waiters.append(waiter)
        try:
            await waiter[0]
        finally:
            if not waiter[0].done:
                self._waiters.remove(waiter)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.holder = None
        if self._waiters:
            future, self.holder = self._waiters.popleft()
            future.set(None)


class Flag:
    """A boolean that tasks can wait for. (asyncio and threading call it Event, but here an event is a line of the
    history.)"""

    def __init__(self, name: str) -> None:
        self.name = name
        self._future: Future[None] = Future(("flag", name))

    @property
    def raised(self) -> bool:
        return self._future.done

    def raise_(self) -> None:
        self._future.set(None)

    def clear(self) -> None:
        if self._future.done:
            self._future = Future(("flag", self.name))

    def wait(self) -> Future[None]:
        """A future that is done when the flag is raised. After the flag is cleared, ask for a new one."""
        return self._future


class Mailbox(Generic[T]):
    """A bounded queue. `put` never waits. More than `limit` items raise MailboxFull, because an unlimited queue would
    hide that its reader has stopped."""

    def __init__(self, name: str, limit: int) -> None:
        self.name = name
        self.limit = limit
        #: Lists, because 100,000 sessions have a mailbox each, most of them empty, and an empty deque takes much
        #: memory.
        self._items: list[T] = []
        self._waiters: list[Future[T]] = []
        self._readable: Future[None] | None = None

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: T) -> None:
        if self._waiters:
            self._waiters.pop(0).set(item)
            return
        if len(self._items) >= self.limit:
            raise MailboxFull(f"mailbox {self.name} holds its limit of {self.limit}; its reader does not keep up")
        self._items.append(item)
        readable, self._readable = self._readable, None  # its callback may ask for the next one
        if readable is not None:
            readable.set(None)

    async def get(self) -> T:
        if self._items:
            return self._items.pop(0)
        waiter: Future[T] = Future(("mail in", self.name))
        self._waiters.append(waiter)
        try:
            return await waiter
        finally:
            if not waiter.done:
                self._waiters.remove(waiter)

    def take(self) -> T | None:
        """The item that `get` would return at once; None if there is none. For adapters, which have no task."""
        return self._items.pop(0) if self._items else None

    def readable(self) -> Future[None]:
        """A future that is done as soon as there is something to get. For use with `first`."""
        if self._items:
            ready: Future[None] = Future(("mail in", self.name))
            ready.set(None)
            return ready
        if self._readable is None:
            self._readable = Future(("mail in", self.name))
        return self._readable
