"""Who runs next: seeds, strategies, and what a stuck simulation says."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from rebalance_lab.kernel import Deadlock, Future, Kernel, Livelock
from rebalance_lab.kernel import simulation as simulation_module
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.kernel.simulation import Simulation


async def race(kernel: Kernel, order: list[str]) -> None:
    """Eight tasks that become ready in one instant, three times."""

    async def runner(name: str) -> None:
        for _ in range(3):
            await kernel.sleep(1_000)
            order.append(name)

    async with kernel.scope("race") as scope:
        for name in "abcdefgh":
            scope.spawn(runner(name), name)


def order_of(seed: int | str, *, fifo: bool = False) -> str:
    simulation = Simulation(seed, fifo=fifo)
    order: list[str] = []
    simulation.run(race(simulation.kernel, order))
    return "".join(order)


def test_the_same_seed_gives_the_same_order():
    assert [order_of(seed) for seed in range(10)] == [order_of(seed) for seed in range(10)]


def test_seeds_reach_many_orders():
    orders = {order_of(seed) for seed in range(50)}
    assert len(orders) == 50
    assert {order[0] for order in orders} == set("abcdefgh"), "every task comes first under some seed"


def test_first_come_first_served_is_one_strategy():
    assert order_of(1, fifo=True) == order_of(2, fifo=True) == "abcdefgh" * 3


def test_two_tasks_reach_both_orders():
    def first_of(seed: int) -> str:
        simulation = Simulation(seed)
        order: list[str] = []

        async def note(name: str) -> None:
            order.append(name)

        async def main() -> None:
            async with simulation.kernel.scope("s") as scope:
                scope.spawn(note("a"), "a")
                scope.spawn(note("b"), "b")

        simulation.run(main())
        return "".join(order)

    assert {first_of(seed) for seed in range(20)} == {"ab", "ba"}


PRINT_ORDERS = """
from rebalance_lab.kernel import RandomStream
from rebalance_lab.kernel.simulation import Simulation
async def main(kernel, order):
    async def runner(name):
        for _ in range(3):
            await kernel.sleep(1000)
            order.append(name)
    async with kernel.scope("race") as scope:
        for name in "abcdefgh":
            scope.spawn(runner(name), name)
for seed in range(5):
    simulation = Simulation(seed)
    order = []
    simulation.run(main(simulation.kernel, order))
    print("".join(order), RandomStream(seed, "m1", "id").hex(16))
"""


def test_orders_and_streams_are_the_same_under_any_hash_seed():
    printed = [
        subprocess.run(
            [sys.executable, "-c", PRINT_ORDERS],
            env={"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        ).stdout
        for hash_seed in ("1", "4242")
    ]
    assert printed[0] == printed[1]
    assert [line.split()[0] for line in printed[0].splitlines()] == [order_of(seed) for seed in range(5)]


def test_a_deadlock_names_who_waits_for_what():
    simulation = Simulation(seed=7)
    kernel = simulation.kernel
    lock = kernel.lock("claims")
    paused = kernel.process("m2")
    killed = kernel.process("m3")

    async def holder() -> None:
        async with lock:
            await kernel.first(kernel.mailbox("events of m1", 8).readable(), Future("watch on /ids"))

    async def waiter() -> None:
        async with lock:
            raise AssertionError("never")

    async def main() -> None:
        async with kernel.scope("trial") as scope:
            scope.spawn(holder(), "holder")
            await kernel.sleep(5)
            scope.spawn(waiter(), "waiter")
            kernel.spawn(one(kernel.flag("closing").wait()), "closer", process=paused)
            kernel.spawn(one(kernel.sleep(20)), "sleeper", process=killed)
            await kernel.sleep(5)
            paused.pause()
            killed.kill()
            kernel.spawn(one(kernel.sleep(1)), "late", process=paused)

    with pytest.raises(Deadlock) as caught:
        simulation.run(main())
    assert str(caught.value).splitlines() == [
        "at 25 us (seed 7) nothing is scheduled and tasks wait:",
        "  main: waits for children of scope trial",
        "  holder: waits for first of mail in events of m1, watch on /ids",
        "  waiter: waits for lock claims held by holder",
        "  m2/closer: paused, waits for flag closing",
        "  m3/sleeper: killed, waits for sleep until 25 us",
        "  m2/late: paused, waits for nothing",
    ]
    simulation.close()


async def one(future: Future[None]) -> None:
    await future


def test_the_story_shows_tasks_that_are_ready():
    simulation = Simulation(seed=0)

    async def main() -> str:
        simulation.kernel.spawn(one(Future("x")), "fresh")
        return simulation.kernel.story()

    assert simulation.run(main()) == "  main: runs now\n  fresh: ready to run"
    simulation.close()


def test_the_horizon_is_an_end():
    simulation = Simulation(seed=0)

    async def main() -> None:
        await simulation.kernel.sleep(5_000)

    with pytest.raises(Deadlock, match=r"at 0 us .* the horizon of 4000 us is reached and tasks wait:\n  main: waits"):
        simulation.run(main(), until_us=4_000)
    simulation.close()


def test_a_loop_that_never_waits_is_a_livelock(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(simulation_module, "INSTANT_STEPS_LIMIT", 1_000)
    simulation = Simulation(seed=3)
    kernel = simulation.kernel

    async def spin(mine: Any, other: Any) -> None:
        while True:
            other.put(await mine.get())

    async def main() -> None:
        left, right = kernel.mailbox("left", 2), kernel.mailbox("right", 2)
        left.put("ball")
        async with kernel.scope("s") as scope:
            scope.spawn(spin(left, right), "pinger")
            scope.spawn(spin(right, left), "ponger")

    with pytest.raises(Livelock, match=r"1000 steps at 0 us \(seed 3\):(?s:.*)pinger: "):
        simulation.run(main())
    simulation.close()


def test_sleeping_for_no_time_is_a_livelock_too(monkeypatch: pytest.MonkeyPatch):
    """Each turn is a timer of its own, but the clock never moves."""
    monkeypatch.setattr(simulation_module, "INSTANT_STEPS_LIMIT", 1_000)
    simulation = Simulation(seed=3)

    async def main() -> None:
        await simulation.kernel.sleep(10)
        while True:
            await simulation.kernel.sleep(0)

    with pytest.raises(Livelock, match="steps at 10 us"):
        simulation.run(main())
    simulation.close()


def test_a_timer_that_arms_itself_for_now_is_a_livelock_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(simulation_module, "INSTANT_STEPS_LIMIT", 1_000)
    simulation = Simulation(seed=3)
    kernel = simulation.kernel

    def again() -> None:
        kernel.call_at(kernel.now_us(), again)

    async def main() -> None:
        again()
        await Future("never")

    with pytest.raises(Livelock, match="steps at 0 us"):
        simulation.run(main())
    simulation.close()


def test_many_steps_in_many_instants_are_no_livelock(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(simulation_module, "INSTANT_STEPS_LIMIT", 50)
    simulation = Simulation(seed=3)

    async def main() -> int:
        for _ in range(200):
            await simulation.kernel.sleep(1)
        return simulation.kernel.now_us()

    assert simulation.run(main()) == 200


def test_invariants_are_looked_at_after_every_event():
    simulation = Simulation(seed=0)
    kernel = simulation.kernel
    owners = {"p0": 1}

    def one_owner() -> None:
        assert owners["p0"] <= 1, f"two owners at {kernel.now_us()} us"

    simulation.invariants.append(one_owner)

    async def main() -> None:
        await kernel.sleep(5)
        owners["p0"] += 1
        await kernel.sleep(5)
        owners["p0"] -= 1

    with pytest.raises(AssertionError, match="two owners at 5 us"):
        simulation.run(main())
    simulation.close()


def test_a_failing_root_task_ends_the_run_in_both_worlds():
    async def bad(kernel: Kernel) -> None:
        await kernel.sleep(1_000)
        raise ValueError("root broke")

    async def main(kernel: Kernel) -> None:
        kernel.start_root(bad(kernel), "bad")
        await Future("never")

    simulation = Simulation(seed=9)
    with pytest.raises(ValueError, match="root broke") as caught:
        simulation.run(main(simulation.kernel))
    assert caught.value.__notes__ == ["in root task bad at 1000 us (seed 9)"]
    simulation.close()
    with LiveKernel() as lab, pytest.raises(ValueError, match="root broke") as caught:
        lab.run(main(lab.kernel))
    assert caught.value.__notes__ == ["in root task bad"]


def test_a_root_task_that_ends_well_ends_nothing():
    async def main(kernel: Kernel) -> str:
        task = kernel.start_root(one(kernel.sleep(1_000)), "good")
        await task
        return "end"

    simulation = Simulation(seed=0)
    assert simulation.run(main(simulation.kernel)) == "end"
    with LiveKernel() as lab:
        assert lab.run(main(lab.kernel)) == "end"


def test_a_root_task_that_was_cancelled_is_no_failure():
    async def main(kernel: Kernel) -> str:
        task = kernel.start_root(one(Future("never")), "follower")
        await kernel.sleep(1_000)
        task.cancel("not needed")
        await kernel.sleep(1_000)
        return "end" if task.cancelled else "still there"

    simulation = Simulation(seed=0)
    assert simulation.run(main(simulation.kernel)) == "end"
    with LiveKernel() as lab:
        assert lab.run(main(lab.kernel)) == "end"


def test_what_the_loop_reports_without_a_run_is_logged(caplog: pytest.LogCaptureFixture):
    with LiveKernel() as lab:
        lab.loop.call_exception_handler({"message": "told without an exception"})
        lab.loop.call_exception_handler({"message": "told between runs", "exception": ValueError("x")})
        assert lab.kernel.failures == []
    assert [record.message.splitlines()[0] for record in caplog.records] == [
        "told without an exception",
        "told between runs",
    ]


def test_an_error_in_a_timers_callback_ends_the_run_in_both_worlds():
    def broken() -> None:
        raise ValueError("callback broke")

    async def main(kernel: Kernel) -> None:
        kernel.call_at(kernel.now_us() + 1_000, broken)
        await kernel.sleep(10_000_000)

    simulation = Simulation(seed=0)
    with pytest.raises(ValueError, match="callback broke"):
        simulation.run(main(simulation.kernel))
    simulation.close()
    with LiveKernel() as lab, pytest.raises(ValueError, match="callback broke"):
        lab.run(main(lab.kernel))


def test_a_live_kernel_can_run_again_and_its_main_task_may_fail():
    async def fail() -> None:
        raise ValueError("main broke")

    async def answer() -> int:
        return 42

    with LiveKernel() as lab:
        with pytest.raises(ValueError, match="main broke"):
            lab.run(fail())
        assert lab.run(answer()) == 42


def test_a_live_kernel_lets_the_loop_breathe_between_steps():
    """A long chain of ready tasks must not keep the loop from its sockets."""
    turns: list[str] = []

    async def main(lab: LiveKernel) -> None:
        box, back = lab.kernel.mailbox("box", 1), lab.kernel.mailbox("back", 1)

        async def echo() -> None:
            while True:
                back.put(await box.get())

        lab.kernel.spawn(echo(), "echo")
        lab.loop.call_soon(turns.append, "loop")
        for _ in range(1_000):
            box.put(1)
            await back.get()
        turns.append("main")

    with LiveKernel() as lab:
        lab.run(main(lab))
    assert turns == ["loop", "main"]
