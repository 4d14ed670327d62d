"""Running a kernel on virtual time."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from rebalance_lab.kernel.drivers import HeapDriver
from rebalance_lab.kernel.errors import Deadlock, Livelock
from rebalance_lab.kernel.garbage import without_collector
from rebalance_lab.kernel.kernel import Kernel
from rebalance_lab.kernel.randomness import RandomStream

T = TypeVar("T")

#: With more steps and events than this in one microsecond, some loop never waits for time.
INSTANT_STEPS_LIMIT = 5_000_000

#: A simulation that runs longer than this in virtual time will not end.
HORIZON_US = 24 * 3600 * 1_000_000


class Simulation:
    """A kernel on a heap. The seed chooses among ready tasks.

    `invariants` are called after every event, and raise if the world is in an impossible state.
    """

    def __init__(self, seed: int | str, *, fifo: bool = False) -> None:
        self.seed = seed
        self.driver = HeapDriver()
        self.kernel = Kernel(self.driver, None if fifo else RandomStream(seed, "kernel", "schedule"))
        self.invariants: list[Callable[[], None]] = []

    def run(self, coroutine: Coroutine[Any, Any, T], name: str = "main", *, until_us: int = HORIZON_US) -> T:
        """Run `coroutine` to its end and return its result. Other tasks stop where they are.

        Raises Deadlock if it waits and nothing is scheduled (or the horizon is reached), Livelock, or the first failure
        of a root task.
        """
        kernel, driver, invariants = self.kernel, self.driver, self.invariants
        main = kernel.spawn(coroutine, name)
        instant_us, events, steps_before = driver.time_us, 0, kernel.steps
        with without_collector():
            while True:
                kernel.drain(INSTANT_STEPS_LIMIT)
                if kernel.steps - steps_before + events >= INSTANT_STEPS_LIMIT:
                    taken = kernel.steps - steps_before + events
                    raise Livelock(f"{taken} steps at {kernel.now_us()} us (seed {self.seed}):\n{kernel.story()}")
                for check in invariants:
                    check()
                if kernel.failures:
                    where, error = kernel.failures[0]
                    error.add_note(f"in {where} at {kernel.now_us()} us (seed {self.seed})")
                    raise error
                if main.done:
                    return main.result()
                if not driver.advance(until_us):
                    reason = "nothing is scheduled" if driver.empty else f"the horizon of {until_us} us is reached"
                    raise Deadlock(
                        f"at {kernel.now_us()} us (seed {self.seed}) {reason} and tasks wait:\n{kernel.story()}"
                    )
                if driver.time_us != instant_us:
                    instant_us, events, steps_before = driver.time_us, 0, kernel.steps
                events += 1

    def close(self) -> None:
        self.kernel.close()
