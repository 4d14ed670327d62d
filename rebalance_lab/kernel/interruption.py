"""How a process ends on SIGINT, SIGTERM and SIGHUP: one behaviour, wherever its main thread is at that moment."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

#: After this time a signal is sent again whose exception was lost.
_AGAIN_S = 0.05


class Interrupted(KeyboardInterrupt):
    """Raised in the main thread by the first such signal. `number`: of the signal."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(f"interrupted by {number.name}")
        self.number = number


class Interruption:
    """`number`: of the first signal; None until there was one."""

    def __init__(self) -> None:
        self.number: signal.Signals | None = None
        self._lost = False

    @property
    def exit_code(self) -> int:
        """The exit code that shells report for a command that a signal ended."""
        return 128 + (self.number or signal.SIGINT)

    def on_signal(self, number: int, _frame: FrameType | None) -> None:
        """Later signals do not interrupt the clean-up that follows the first."""
        if self.number is None or self._lost:
            self._lost = False
            self.number = signal.Signals(number)
            # It may come between the making of a coroutine and its start, of which Python would warn at the end.
            warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
            raise Interrupted(self.number)

    def on_unraisable(self, before: Callable[[Any], object], raised: Any) -> None:
        """Python drops an exception that is raised in a finalizer. The signal is sent again then."""
        if isinstance(raised.exc_value, Interrupted):
            self._lost = True
            threading.Timer(_AGAIN_S, os.kill, (os.getpid(), raised.exc_value.number)).start()
        else:
            before(raised)


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Within the block the first signal raises Interrupted in the main thread. A signal that is ignored, as SIGHUP is
    under nohup, stays so. Main thread only."""
    found = Interruption()
    hook = sys.unraisablehook
    heard = [each for each in SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, found.on_signal) for each in heard}
    sys.unraisablehook = lambda raised: found.on_unraisable(hook, raised)
    try:
        yield found
    finally:
        sys.unraisablehook = hook
        for each, handler in before.items():
            signal.signal(each, handler)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Signals that arrive within the block take effect at its end. For short work that must not stop half-way, such as
    the start of a process. In other threads than the main one nothing needs to be done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    before = {each: signal.getsignal(each) for each in SIGNALS}
    for each, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(each, lambda number, _frame: arrived.append(number))
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        if arrived:
            signal.raise_signal(arrived[0])
