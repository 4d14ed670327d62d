"""The one task system. Protocol code runs on it in every world; only the driver differs.

Why not asyncio: two task systems would drift apart. asyncio loses a reply that arrives in the same tick as a
cancellation, its TaskGroup does not keep the reason of a cancellation, and it cannot pause or kill. So a protocol
coroutine is never an asyncio task. The live driver only supplies time and wake-ups, and adapters only complete the
kernel's futures from callbacks of the loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from rebalance_lab.kernel.drivers import Driver
from rebalance_lab.kernel.errors import KernelClosed
from rebalance_lab.kernel.futures import Future
from rebalance_lab.kernel.process import Process, ProcessState
from rebalance_lab.kernel.randomness import RandomStream
from rebalance_lab.kernel.scopes import Deadline, Scope, Shield
from rebalance_lab.kernel.sync import Flag, Lock, Mailbox
from rebalance_lab.kernel.tasks import Task
from rebalance_lab.kernel.timers import Sleep, Timer

T = TypeVar("T")

#: The id of the event that caused what runs now: (actor, n).
Cause = tuple[str, int] | None

#: Steps the live kernel runs before it lets the loop look at its sockets again.
DRAIN_LIMIT = 512


class Kernel:
    """Ready tasks, timers, processes. One thread; not thread-safe.

    `chooser` chooses which of several ready tasks runs next. With None it is first come, first served; with a
    RandomStream, the simulator's default, the seed chooses.
    """

    def __init__(self, driver: Driver, chooser: RandomStream | None = None) -> None:
        self.driver = driver
        self.now_us = driver.now_us
        self._wakes = driver.wakes
        self.cause: Cause = None
        self.steps = 0
        self.closed = False
        self.failures: list[tuple[str, BaseException]] = []
        self.on_failure: Callable[[], None] | None = None
        self._chooser = chooser
        self._ready: deque[Task[Any]] | list[Task[Any]]
        self._next: Callable[[], Task[Any]]
        if chooser is None:
            first_come: deque[Task[Any]] = deque()
            self._ready, self._next = first_come, first_come.popleft
        else:
            self._ready, self._next = [], self._choose
        self._current: Task[Any] | None = None
        self._tasks: dict[Task[Any], None] = {}
        self._timers = 0

    # -- tasks ------------------------------------------------------------------------------

    @property
    def current(self) -> Task[Any]:
        """The task that is running. Raises RuntimeError if there is none."""
        if self._current is None:
            raise RuntimeError("no task of this kernel is running")
        return self._current

    @property
    def current_process(self) -> Process | None:
        return self._current.process if self._current is not None else None

    @property
    def tasks(self) -> tuple[Task[Any], ...]:
        """All tasks that have not ended, oldest first."""
        return tuple(self._tasks)

    def process(self, name: str) -> Process:
        return Process(self, name)

    def spawn(self, coroutine: Coroutine[Any, Any, T], name: str, *, process: Process | None = None) -> Task[T]:
        """Start a task. Only scopes and `start_root` use this; protocol code spawns tasks in a scope.

        Raises KernelClosed after `close`.
        """
        if self.closed:
            coroutine.close()
            raise KernelClosed(f"cannot start task {name}: the kernel is closed")
        task = Task(self, coroutine, name, process, self.cause)
        self._tasks[task] = None
        self.ready(task)
        return task

    def start_root(self, coroutine: Coroutine[Any, Any, T], name: str, *, process: Process | None = None) -> Task[T]:
        """Start a root task. If it fails, the driver's run raises its error. Cancelling it is not a failure, because
        the code that cancels it knows about it."""
        task = self.spawn(coroutine, name, process=process)
        task.on(self._root_done)
        return task

    def _root_done(self, task: Future[Any]) -> None:
        assert isinstance(task, Task)
        if task.error is not None and not task.cancelled:
            self.failed(f"root task {task.name}", task.error)

    def failed(self, where: str, error: BaseException) -> None:
        """Record a failure that no task can receive. The driver's run raises it."""
        self.failures.append((where, error))
        if self.on_failure is not None:
            self.on_failure()

    def ready(self, task: Task[Any]) -> None:
        if not task.queued and not self.closed:
            task.queued = True
            self._ready.append(task)
            if self._wakes:
                self.driver.wake(self.drain)

    def drain(self, limit: int = DRAIN_LIMIT) -> None:
        """Run the ready tasks, at most `limit` steps. The rest runs at the next wake-up."""
        ready = self._ready
        steps = 0
        while ready:
            if steps >= limit:
                self.driver.wake(self.drain)
                return
            steps += 1
            self._run(self._next())

    def _choose(self) -> Task[Any]:
        """Let the seed choose among the ready tasks."""
        ready = self._ready
        assert self._chooser is not None
        return ready.pop(self._chooser.below(len(ready)) if len(ready) > 1 else 0)  # type: ignore[call-arg]

    def _run(self, task: Task[Any]) -> None:
        task.queued = False
        process = task.process
        if process is not None and not process.running:
            if process.state is ProcessState.PAUSED:
                process.hold_task(task)
            return
        self.steps += 1
        self._current = task
        try:
            task.step()
        finally:
            self._current = None
            self.cause = None
            if task.done:
                self._tasks.pop(task, None)

    # -- time -------------------------------------------------------------------------------

    def call_at(
        self,
        due_us: int,
        callback: Callable[[], None],
        *,
        process: Process | None = None,
        cause: Cause = None,
    ) -> Timer:
        """Call back at a time, in the given process or the current one."""
        if self.closed:
            raise KernelClosed("cannot arm a timer: the kernel is closed")
        self._timers += 1
        return Timer(self, due_us, callback, process or self.current_process, cause or self.cause, self._timers)

    def sleep(self, duration_us: int) -> Sleep:
        """A future that is done `duration_us` from now."""
        return Sleep(self, self.now_us() + duration_us)

    # -- causes -----------------------------------------------------------------------------

    def stimulated(self, cause: Cause, callback: Callable[[], object]) -> None:
        """Run `callback`, with `cause` as the cause of everything that it wakes."""
        before, self.cause = self.cause, cause
        try:
            callback()
        finally:
            self.cause = before

    # -- blocks and tools for protocol code -------------------------------------------------

    def scope(self, name: str) -> Scope:
        return Scope(self, name)

    def timeout(self, timeout_us: int, name: str = "") -> Deadline:
        return Deadline(self, timeout_us, name)

    def shield(self) -> Shield:
        return Shield(self)

    def lock(self, name: str) -> Lock:
        return Lock(self, name)

    def flag(self, name: str) -> Flag:
        return Flag(name)

    def mailbox(self, name: str, limit: int) -> Mailbox[Any]:
        return Mailbox(name, limit)

    async def first(self, *futures: Future[Any]) -> int:
        """The index of the first future that is done. The others stay as they are, so a watch that is not the first
        stays set. Raises ValueError without futures."""
        if not futures:
            raise ValueError("first() of nothing would wait for ever")
        for index, future in enumerate(futures):
            if future.done:
                return index
        winner: Future[int] = Future(("first of", [future.label for future in futures]))

        def watch(index: int) -> Callable[[Future[Any]], None]:
            def done(_future: Future[Any]) -> None:
                winner.set(index)

            return done

        callbacks = [watch(index) for index in range(len(futures))]
        for future, callback in zip(futures, callbacks, strict=True):
            future.on(callback)
        try:
            return await winner
        finally:
            for future, callback in zip(futures, callbacks, strict=True):
                future.off(callback)

    # -- end --------------------------------------------------------------------------------

    def waits(self) -> list[tuple[str, str]]:
        """Every task and what it waits for, both as text, oldest task first."""
        return [
            (f"{_whose(task)}{task.name}", "runs now" if task is self._current else _waiting(task))
            for task in self._tasks
        ]

    def story(self) -> str:
        """Every task and what it waits for, one line for each."""
        return "\n".join(f"  {name}: {waiting}" for name, waiting in self.waits())

    def close(self) -> None:
        """Fence everything, then unwind the tasks that still wait, including parked tasks of killed processes. Seal the
        history first, because the clean-up code that runs here must not be recorded."""
        self.closed = True
        self._ready.clear()
        for task in list(self._tasks):
            self._current = task
            try:
                task.dispose()
            finally:
                self._current = None
        self._tasks.clear()


def _whose(task: Task[Any]) -> str:
    return f"{task.process.name}/" if task.process is not None else ""


def _waiting(task: Task[Any]) -> str:
    if task.process is not None and not task.process.running:
        return f"{task.process.state.value}, waits for {_label(task.waiting_on)}"
    return "ready to run" if task.waiting_on is None else f"waits for {_label(task.waiting_on)}"


def _label(future: Future[Any] | None) -> str:
    if future is None:
        return "nothing"
    return _words(future.label)


def _words(label: object) -> str:
    """A label as text. The parts of a tuple are separated by blanks, those of a list by commas."""
    if isinstance(label, (tuple, list)):
        return (", " if isinstance(label, list) else " ").join(_words(part) for part in label)
    return str(label)
