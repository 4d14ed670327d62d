"""The two drivers: a heap with virtual time, and asyncio. They share everything else."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable
from typing import Any, Protocol


class Driver(Protocol):
    """What the kernel needs from a world: the time, calls at a given time, and calls as soon as possible. `wakes`:
    whether `wake` does anything."""

    wakes: bool

    def now_us(self) -> int: ...
    def call_at(self, due_us: int, callback: Callable[[], None]) -> Any: ...
    def cancel(self, handle: Any) -> None: ...
    def wake(self, drain: Callable[[], None]) -> None: ...


class HeapDriver:
    """Virtual time: the next event is the one with the smallest (microsecond, sequence).

    `wake` does nothing, because the caller that runs the heap drains the kernel after each event.
    """

    wakes = False

    def __init__(self) -> None:
        self.time_us = 0
        self._sequence = 0
        #: (due, sequence, function, argument). A call that can be cancelled is a cell, see `call_at`.
        self._heap: list[tuple[int, int, Callable[[Any], object], Any]] = []

    def now_us(self) -> int:
        return self.time_us

    def call_at(self, due_us: int, callback: Callable[[], None]) -> list[Any]:
        cell = [callback]
        self.post(due_us, _run_cell, cell)
        return cell

    def post(self, due_us: int, function: Callable[[Any], object], argument: Any) -> None:
        """Call `function(argument)` at a time, like `call_at`, but without a way to cancel the call."""
        self._sequence += 1
        heapq.heappush(
            self._heap, (due_us if due_us > self.time_us else self.time_us, self._sequence, function, argument)
        )

    def cancel(self, handle: list[Any]) -> None:
        handle[0] = None

    def wake(self, drain: Callable[[], None]) -> None:
        """Nothing to do: see the class."""

    def advance(self, until_us: int) -> bool:
        """Move time to the next call up to `until_us` and run it. Returns False if there is none."""
        heap = self._heap
        while heap:
            call = heapq.heappop(heap)
            due_us, _, function, argument = call
            if function is _run_cell and argument[0] is None:
                continue
            if due_us > until_us:
                heapq.heappush(heap, call)
                return False
            self.time_us = due_us
            function(argument)
            return True
        return False

    @property
    def empty(self) -> bool:
        while self._heap and self._heap[0][2] is _run_cell and self._heap[0][3][0] is None:
            heapq.heappop(self._heap)
        return not self._heap


def _run_cell(cell: list[Any]) -> None:
    cell[0]()


class AsyncioDriver:
    """Real time on an asyncio loop. The time is CLOCK_MONOTONIC, which processes on one host can compare."""

    wakes = True

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._woken = False

    def now_us(self) -> int:
        return time.monotonic_ns() // 1000

    def call_at(self, due_us: int, callback: Callable[[], None]) -> asyncio.TimerHandle:
        # The loop's time is this clock in seconds. The time is absolute, so two calls keep their order even if the
        # machine stalls between them.
        return self.loop.call_at(due_us / 1e6, callback)

    def cancel(self, handle: asyncio.TimerHandle) -> None:
        handle.cancel()

    def wake(self, drain: Callable[[], None]) -> None:
        if not self._woken:
            self._woken = True
            self.loop.call_soon(self._drain, drain)

    def _drain(self, drain: Callable[[], None]) -> None:
        self._woken = False
        drain()
