"""How a process ends on SIGINT, SIGTERM and SIGHUP: one behaviour, wherever its main thread is at that moment."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from types import CodeType, FrameType, FunctionType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

#: How long the clean-up after a signal may take before what it waits for is ended by force. Spark may take long to
#: stop on a busy machine.
STANDSTILL_S = 30.0

#: How long it may take before the process itself is ended by force. Containers are stopped one after the other.
LAST_RESORT_S = 120.0

#: After this time a signal is sent again whose exception was lost, or which the main thread has not noticed.
_AGAIN_S = 0.05

#: Functions that have taken a lock, entered a block or ended a process, and have not noted it yet. After an exception
#: there the lock would stay taken, and the block would never be left.
_DELICATE: frozenset[CodeType] = frozenset(
    found.__code__
    for owner, names in (
        (threading.Condition, ("__enter__", "__exit__", "wait", "_release_save", "_acquire_restore")),
        (logging.Handler, ("acquire",)),
        (logging, ("_acquireLock",)),  # up to Python 3.12
        (subprocess.Popen, ("_execute_child", "_internal_poll", "_try_wait", "_wait")),
        (contextlib.ExitStack, ("enter_context", "callback", "__exit__", "_push_cm_exit", "_push_exit_callback")),
        (contextlib.ExitStack, ("_create_exit_wrapper", "_create_cb_wrapper")),
        (contextlib._GeneratorContextManager, ("__enter__", "__exit__")),
    )
    for name in names
    if isinstance(found := getattr(owner, name, None), FunctionType)
)

#: How often a signal is put off at most that arrives in one of them.
_PUT_OFF = 100


class Interrupted(KeyboardInterrupt):
    """Raised in the main thread by the first such signal. `number`: of the signal."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(f"interrupted by {number.name}")
        self.number = number


#: A function that ends what the main thread may wait for, and the time after which it is called, in seconds.
_Break = tuple[Callable[[], object], float]


class Interruption:
    """`number`: of the first signal that was raised; None until there was one. `arrived`: of the first that came, which
    may have been put off. An error that follows it may be its consequence, as when it has ended other processes, too.
    """

    def __init__(self) -> None:
        self.number: signal.Signals | None = None
        self.arrived: signal.Signals | None = None
        self._is_over = False
        self._lost = False
        self._put_off: list[tuple[FrameType, int]] = []
        self._breaks: list[_Break] = []

    @contextmanager
    def breaking_off(self, breaks: Callable[[], object], after_s: float) -> Iterator[None]:
        """See the function of this name."""
        added = breaks, after_s
        self._breaks.append(added)
        try:
            yield
        finally:
            if added in self._breaks:
                self._breaks.remove(added)

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Later signals do not interrupt the clean-up that follows the first, and none changes what has ended. Python
        drops as well what is raised within `on_unraisable`: there a signal waits until it is sent again, and so it does
        in a function that must not stop half-way."""
        if self.arrived is None and not self._is_over:
            self.arrived = signal.Signals(number)
        if not self._is_over and (self.number is None or self._lost) and not _is_noting(frame):
            if frame is not None and self._is_put_off(frame):
                return  # `insist` sends it again
            self._put_off.clear()
            self.number = signal.Signals(number)
            self._lost = False
            # It may come between the making of a coroutine and its start, of which Python would warn at the end.
            warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
            raise Interrupted(self.number)

    def _is_put_off(self, frame: FrameType) -> bool:
        """Whether the main thread must not be interrupted where it is. If it is in the same place when the signal is
        sent again, it most likely waits there, and may be interrupted."""
        place = frame, frame.f_lasti
        if frame.f_code not in _DELICATE or place in self._put_off[-1:] or len(self._put_off) >= _PUT_OFF:
            return False
        self._put_off.append(place)
        return True

    def on_unraisable(self, before: Callable[[Any], object], raised: Any) -> None:
        """Python drops an exception that is raised in a finalizer. The signal is sent again then. After a signal other
        exceptions are its consequences, as of an event loop that was half made."""
        if isinstance(raised.exc_value, Interrupted):
            self._lost = True
            signal.raise_signal(raised.exc_value.number)  # `insist` takes it up
        elif self.number is None:
            before(raised)

    def over(self) -> None:
        """The block has ended, if only by an error that the first signal caused: no signal counts any more, and nothing
        is sent again."""
        self._is_over = True
        self._put_off.clear()

    def insist(self, arrivals: int, main: int) -> None:
        """Send signals again to the thread `main` until it notices them. `arrivals`: the file descriptor at which
        Python writes the number of each signal as it arrives; returns when it ends.

        A signal that arrives after Python has looked for signals and before a system call begins to wait does not end
        the wait, and its handler runs only afterwards. On a busy machine it happened to one signal in 500.
        """
        while number := os.read(arrivals, 1):
            while self._is_owed(number[0]):
                time.sleep(_AGAIN_S)
                if self._is_owed(number[0]):
                    signal.pthread_kill(main, number[0])
            self._break_off()

    def _break_off(self) -> None:
        """Wait until what a signal has interrupted has ended; end what it may wait for if that takes too long."""
        began_s = time.monotonic()
        tried: list[_Break] = []
        while self.number is not None and not self._lost and not self._is_over:
            time.sleep(_AGAIN_S)
            waiting = [each for each in self._breaks[::-1] if each not in tried]
            if not waiting:
                return
            for each in waiting:
                breaks, after_s = each
                if time.monotonic() - began_s > after_s:
                    tried.append(each)
                    with suppress(Exception):  # others may help, and other signals still have to be noticed
                        breaks()

    def _is_owed(self, number: int) -> bool:
        """Whether a signal that has arrived must still interrupt the main thread, and does so once it is noticed."""
        is_owed = not self._is_over and (self.number is None or self._lost)
        return is_owed and signal.getsignal(number) == self.on_signal


def _is_noting(frame: FrameType | None) -> bool:
    """Whether `on_unraisable` is running, in this frame or in one that has led to it."""
    while frame is not None and frame.f_code is not Interruption.on_unraisable.__code__:
        frame = frame.f_back
    return frame is not None


#: Those of the `interruptible` blocks in which this process is; one at most.
_CURRENT: list[Interruption] = []


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Within the block the first signal raises Interrupted in the main thread. A signal that is ignored, as SIGHUP is
    under nohup, stays so. Main thread only."""
    found = Interruption()
    hook = sys.unraisablehook
    heard = [each for each in SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, found.on_signal) for each in heard}
    sys.unraisablehook = partial(found.on_unraisable, hook)
    _CURRENT.append(found)
    try:
        with _insisting(found):
            try:
                yield found
            finally:
                found.over()  # while the handlers are there: a signal that was sent again must not meet others
                if found.number is not None:
                    gc.collect()  # what the signal left half made ends while errors of finalizers are not shown
    finally:
        _CURRENT.remove(found)
        sys.unraisablehook = hook
        for each, handler in before.items():
            signal.signal(each, handler)


@contextmanager
def breaking_off(breaks: Callable[[], object], after_s: float | None = None) -> Iterator[None]:
    """If a signal interrupts the block, and it has not ended after `after_s` seconds (default: `STANDSTILL_S`),
    `breaks` is called in another thread. It ends what the main thread may wait for: a library that cleans up may wait
    for a process that waits for it. Outside of `interruptible` nothing is called."""
    with ExitStack() as watched:
        for each in _CURRENT:
            watched.enter_context(each.breaking_off(breaks, STANDSTILL_S if after_s is None else after_s))
        yield


@contextmanager
def _insisting(interruption: Interruption) -> Iterator[None]:
    """Within the block no signal stays unnoticed because the main thread waits."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    arguments = (reading, threading.get_ident())
    thread = threading.Thread(target=interruption.insist, args=arguments, name="insists on signals", daemon=True)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writing)
        thread.join()
        os.close(reading)


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
