"""Runs one story on both drivers and compares what it told.

A story is `async def story(world)`; it logs words, never times. Its durations are multiples of
`world.unit_us`: no real time passes on the heap, and on asyncio the unit is what the machine
must keep up with. A busy machine may stall for longer than a small unit, so a live run that
differs is repeated with larger ones; a real difference differs in each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from rebalance_lab.kernel import Deadline, Future, Kernel, Sleep
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.kernel.simulation import Simulation

LIVE_UNITS_US = (2_000, 20_000, 100_000)
SIMULATED_UNIT_US = 1_000


class World:
    """What a story is given: a kernel, a log and a unit of time."""

    def __init__(self, kernel: Kernel, unit_us: int) -> None:
        self.kernel = kernel
        self.unit_us = unit_us
        self.told: list[str] = []
        self.log = self.told.append

    def sleep(self, units: float) -> Sleep:
        return self.kernel.sleep(round(units * self.unit_us))

    def timeout(self, units: float, name: str = "") -> Deadline:
        return self.kernel.timeout(round(units * self.unit_us), name)

    def never(self, label: str = "never") -> Future[None]:
        return Future(label)

    async def worker(self, name: str, units: float, *, cleanup_units: float = 0) -> str:
        """Sleeps, and tells how it ended; cleaning up may take time too."""
        try:
            await self.sleep(units)
            self.log(f"{name} done")
            return name
        except BaseException as error:
            self.log(f"{name} {type(error).__name__}: {error}")
            raise
        finally:
            if cleanup_units:
                await self.sleep(cleanup_units)
                self.log(f"{name} cleaned")


Story = Callable[[World], Coroutine[Any, Any, None]]


def simulated(story: Story) -> list[str]:
    simulation = Simulation(seed=0, fifo=True)
    try:
        world = World(simulation.kernel, SIMULATED_UNIT_US)
        simulation.run(story(world), "story")
        return list(world.told)
    finally:
        simulation.close()


def live(story: Story, unit_us: int) -> list[str]:
    with LiveKernel() as lab:
        world = World(lab.kernel, unit_us)
        lab.run(story(world), "story")
        return list(world.told)


def assert_told(story: Story, expected: list[str]) -> None:
    """The story tells exactly `expected`, in both worlds."""
    assert simulated(story) == expected
    told = live(story, LIVE_UNITS_US[0])
    for unit_us in LIVE_UNITS_US[1:]:
        if told == expected:
            break
        told = live(story, unit_us)
    assert told == expected
