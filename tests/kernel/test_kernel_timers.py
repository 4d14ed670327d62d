"""What timers leave behind: a simulation runs without the garbage collector, and may run for long."""

from __future__ import annotations

import gc

from rebalance_lab.kernel.simulation import Simulation
from rebalance_lab.kernel.timers import Timer


def timers_alive() -> int:
    return sum(isinstance(each, Timer) for each in gc.get_objects())


def test_timers_that_fired_or_were_cancelled_are_gone_without_the_collector() -> None:
    simulation = Simulation(1)
    kernel = simulation.kernel

    async def main() -> int:
        for _ in range(100):
            await kernel.sleep(1000)
            kernel.call_at(kernel.now_us() + 10, lambda: None).cancel()
            async with kernel.timeout(1000, "which does not pass"):
                await kernel.sleep(10)
        await kernel.sleep(5000)
        return timers_alive()

    gc.collect()
    before = timers_alive()
    assert simulation.run(main()) <= before
    simulation.close()


def test_a_timer_that_waits_is_kept() -> None:
    simulation = Simulation(1)
    fired: list[int] = []

    async def main() -> None:
        simulation.kernel.call_at(500, lambda: fired.append(simulation.kernel.now_us()))
        gc.collect()
        await simulation.kernel.sleep(1000)

    simulation.run(main())
    simulation.close()
    assert fired == [500]
