"""Running a kernel on virtual time."""

from __future__ import annotations

import gc
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from rebalance_lab.kernel.drivers import HeapDriver
from rebalance_lab.kernel.errors import Deadlock, Livelock
from rebalance_lab.kernel.kernel import Kernel
from rebalance_lab.kernel.randomness import RandomStream

T = TypeVar("T")

#: More steps and events than this in one microsecond are a loop that never waits for time.
INSTANT_STEPS_LIMIT = 5_000_000

#: A simulation that runs longer than this in virtual time has lost its end.
HORIZON_US = 24 * 3600 * 1_000_000


class Simulation:
    """A kernel on a heap, with the seed choosing among ready tasks.

    `invariants` are called after every event and raise when the world is impossible.
    """

    def __init__(self, seed: int | str, *, fifo: bool = False) -> None:
        self.seed = seed
        self.driver = HeapDriver()
        self.kernel = Kernel(self.driver, None if fifo else RandomStream(seed, "kernel", "schedule"))
        self.invariants: list[Callable[[], None]] = []
        self._instant_us = 0
        self._instant_steps_before = 0
        self._instant_events = 0

    def run(self, coroutine: Coroutine[Any, Any, T], name: str = "main", *, until_us: int = HORIZON_US) -> T:
        """Run `coroutine` to its end and return its result; other tasks stop where they are.

        Raises Deadlock when nothing is scheduled while it waits (or the horizon is reached),
        Livelock, or the first failure of a root task.
        """
        kernel = self.kernel
        main = kernel.spawn(coroutine, name)
        with frozen_gc():
            while True:
                self._settle()
                if kernel.failures:
                    where, error = kernel.failures[0]
                    error.add_note(f"in {where} at {kernel.now_us()} us (seed {self.seed})")
                    raise error
                if main.done:
                    return main.result()
                callback = self.driver.pop(until_us)
                if callback is None:
                    reason = "nothing is scheduled" if self.driver.empty else f"the horizon of {until_us} us is reached"
                    raise Deadlock(
                        f"at {kernel.now_us()} us (seed {self.seed}) {reason} and tasks wait:\n{kernel.story()}"
                    )
                callback()
                self._count_event()

    def _count_event(self) -> None:
        now_us = self.driver.now_us()
        if now_us != self._instant_us:
            self._instant_us = now_us
            self._instant_steps_before = self.kernel.steps
            self._instant_events = 0
        self._instant_events += 1

    def _settle(self) -> None:
        kernel = self.kernel
        kernel.drain(INSTANT_STEPS_LIMIT)
        taken = kernel.steps - self._instant_steps_before + self._instant_events
        if taken >= INSTANT_STEPS_LIMIT:
            raise Livelock(f"{taken} steps at {kernel.now_us()} us (seed {self.seed}):\n{kernel.story()}")
        for check in self.invariants:
            check()

    def close(self) -> None:
        self.kernel.close()


@contextmanager
def frozen_gc() -> Iterator[None]:
    """Keep the collector out of a run: what is alive before it stays alive, and a run's own
    cycles are few. Passes over everything cost a fifth of a large simulation."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
