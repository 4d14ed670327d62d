"""Timers and sleeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rebalance_lab.kernel.futures import Future
from rebalance_lab.kernel.process import ProcessState

if TYPE_CHECKING:
    from rebalance_lab.kernel.kernel import Cause, Kernel
    from rebalance_lab.kernel.process import Process


class Timer:
    """A call at a given time. It belongs to the process that set it, and passes on its cause."""

    __slots__ = ("_callback", "_cause", "_handle", "_kernel", "_process", "due_us", "sequence")

    def __init__(
        self,
        kernel: Kernel,
        due_us: int,
        callback: Callable[[], None],
        process: Process | None,
        cause: Cause,
        sequence: int,
    ) -> None:
        self.due_us = due_us
        self.sequence = sequence
        self._kernel = kernel
        self._callback: Callable[[], None] | None = callback
        self._process = process
        self._cause = cause
        #: None once it has fired. Otherwise this and what the driver holds would refer to each other and stay alive.
        self._handle: Any = kernel.driver.call_at(due_us, self.fire)

    def fire(self) -> None:
        """The driver calls this, and `resume` calls it again if the process was paused at that time."""
        callback = self._callback
        if callback is None:
            return
        self._handle = None
        process = self._process
        if process is not None and not process.running:
            if process.state is ProcessState.PAUSED:
                process.hold_timer(self)
            return
        self._callback = None
        self._kernel.stimulated(self._cause, callback)

    def cancel(self) -> None:
        """Do not call back. It has no effect if the timer has already fired."""
        if self._callback is not None:
            self._callback = None
            if self._handle is not None:
                self._kernel.driver.cancel(self._handle)


class Sleep(Future[None]):
    """A future that is done at a given time. Its timer is set only while a task waits, so a cancelled sleep leaves
    nothing behind that would keep a simulation alive."""

    __slots__ = ("_cause", "_due_us", "_kernel", "_process", "_timer")

    def __init__(self, kernel: Kernel, due_us: int) -> None:
        super().__init__(label=("sleep until", due_us, "us"))
        self._kernel = kernel
        self._due_us = due_us
        self._process = kernel.current_process
        self._cause = kernel.cause
        self._timer: Timer | None = None

    def on(self, callback: Callable[[Future[None]], None]) -> None:
        super().on(callback)
        if not self.done and self._timer is None:
            due_us = max(self._due_us, self._kernel.now_us())
            self._timer = self._kernel.call_at(due_us, self._fire, process=self._process, cause=self._cause)

    def off(self, callback: Callable[[Future[None]], None]) -> None:
        super().off(callback)
        if not self._callbacks and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        self._timer = None
        self.set(None)
