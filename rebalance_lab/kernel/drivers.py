"""The two drivers: a heap with virtual time, and asyncio. Everything else is shared."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable
from typing import Any, Protocol


class Driver(Protocol):
    """What the kernel needs of a world: the time, a call at a time, a call soon."""

    def now_us(self) -> int: ...
    def call_at(self, due_us: int, callback: Callable[[], None]) -> Any: ...
    def cancel(self, handle: Any) -> None: ...
    def wake(self, drain: Callable[[], None]) -> None: ...


class HeapDriver:
    """Virtual time: the next event is the one with the smallest (microsecond, sequence).

    `wake` does nothing: whoever runs the heap drains the kernel after each event.
    """

    def __init__(self) -> None:
        self._now_us = 0
        self._sequence = 0
        self._heap: list[list[Any]] = []

    def now_us(self) -> int:
        return self._now_us

    def call_at(self, due_us: int, callback: Callable[[], None]) -> list[Any]:
        self._sequence += 1
        entry = [max(due_us, self._now_us), self._sequence, callback]
        heapq.heappush(self._heap, entry)
        return entry

    def cancel(self, handle: list[Any]) -> None:
        handle[2] = None

    def wake(self, drain: Callable[[], None]) -> None:
        """Nothing to do: see the class."""

    def pop(self, until_us: int) -> Callable[[], None] | None:
        """The next call not later than `until_us`, with time moved to it; None if there is none."""
        heap = self._heap
        while heap:
            if heap[0][2] is None:
                heapq.heappop(heap)
                continue
            if heap[0][0] > until_us:
                return None
            due_us, _, callback = heapq.heappop(heap)
            self._now_us = due_us
            return callback  # type: ignore[no-any-return]
        return None

    @property
    def empty(self) -> bool:
        while self._heap and self._heap[0][2] is None:
            heapq.heappop(self._heap)
        return not self._heap


class AsyncioDriver:
    """Real time on an asyncio loop. Time is CLOCK_MONOTONIC, comparable between processes of
    one host."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._woken = False

    def now_us(self) -> int:
        return time.monotonic_ns() // 1000

    def call_at(self, due_us: int, callback: Callable[[], None]) -> asyncio.TimerHandle:
        # The loop's time is this clock in seconds. Absolute, so that two calls keep their
        # order however long the machine stalled between them.
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
