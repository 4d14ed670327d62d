"""Closing a kernel: everything parked is unwound, nothing runs or is written afterwards."""

from __future__ import annotations

import gc
from collections.abc import Callable, Coroutine
from contextlib import closing
from typing import Any

import pytest

from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.history.recorder import MemorySink, Recorder
from rebalance_lab.kernel import Disposed, Future, Kernel, KernelClosed, TaskCancelled
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.kernel.simulation import Simulation

# Unraisable exceptions are errors (filterwarnings in pyproject): a coroutine that was left
# half-way would fail these tests when it is collected.


def lay_out(kernel: Kernel, unwound: list[str]) -> Callable[[], Coroutine[Any, Any, None]]:
    """Tasks of every kind that a trial may leave behind; returns the main coroutine."""

    async def waits(name: str, *, stubborn: int = 0) -> None:
        try:
            await Future(f"for ever by {name}")
        finally:
            for _ in range(stubborn):
                try:
                    await kernel.sleep(1)
                except Disposed:
                    unwound.append(f"{name} held on")
            unwound.append(name)

    async def parent() -> None:
        try:
            async with kernel.scope("s") as scope:
                scope.spawn(waits("child"), "child")
        finally:
            unwound.append("parent")

    async def main() -> None:
        killed, paused = kernel.process("killed"), kernel.process("paused")
        kernel.spawn(waits("in killed"), "a", process=killed)
        kernel.spawn(waits("in paused", stubborn=2), "b", process=paused)
        kernel.start_root(parent(), "parent")
        kernel.start_root(waits("root"), "root")
        await kernel.sleep(1_000)
        killed.kill()
        paused.pause()
        kernel.spawn(waits("never begun"), "c", process=paused)

    return main


EXPECTED = ["in killed", "in paused held on", "in paused held on", "in paused", "parent", "root", "child"]


def test_close_unwinds_what_is_parked_on_the_heap():
    simulation = Simulation(seed=0, fifo=True)
    unwound: list[str] = []
    with closing(simulation):
        simulation.run(lay_out(simulation.kernel, unwound)())
        assert unwound == []
    assert unwound == EXPECTED
    assert simulation.kernel.tasks == ()
    assert simulation.kernel.failures == [], "clean-up at the end is no failure"
    gc.collect()


def test_close_unwinds_what_is_parked_on_asyncio():
    unwound: list[str] = []
    with LiveKernel() as lab:
        lab.run(lay_out(lab.kernel, unwound)())
        assert unwound == []
    assert unwound == EXPECTED
    assert lab.kernel.tasks == ()
    assert lab.loop.is_closed()
    gc.collect()


def test_adapters_of_a_live_kernel_let_go_after_its_tasks():
    unwound: list[str] = []
    with LiveKernel() as lab:
        lab.on_close(lambda: unwound.append(f"adapter, loop closed: {lab.loop.is_closed()}"))
        lab.run(lay_out(lab.kernel, unwound)())
    assert unwound == [*EXPECTED, "adapter, loop closed: False"]


def test_a_closed_kernel_starts_nothing():
    simulation = Simulation(seed=0)
    simulation.close()

    async def work() -> None:
        raise AssertionError("never")

    with pytest.raises(KernelClosed, match="cannot start task late"):
        simulation.kernel.spawn(work(), "late")
    with pytest.raises(KernelClosed, match="cannot arm a timer"):
        simulation.kernel.call_at(1, lambda: None)


def test_a_disposed_task_is_cancelled_for_whoever_holds_it():
    simulation = Simulation(seed=0)

    async def waits() -> None:
        await Future("for ever")

    task = simulation.kernel.spawn(waits(), "w")
    simulation.close()
    with pytest.raises(TaskCancelled, match="the kernel was closed"):
        task.result()


def test_a_task_that_will_not_let_go_is_named():
    simulation = Simulation(seed=0)
    swallowed = 0

    async def stubborn() -> None:
        nonlocal swallowed
        while swallowed < 150:
            try:
                await Future("for ever")
            except Disposed:
                swallowed += 1

    async def main() -> None:
        simulation.kernel.spawn(stubborn(), "mule")
        await simulation.kernel.sleep(1)

    simulation.run(main())
    with pytest.raises(RuntimeError, match="task mule swallowed Disposed 100 times; let it pass"):
        simulation.close()
    simulation.close()  # the second time it is through
    assert swallowed == 150


def test_cleanup_at_close_is_not_history():
    simulation = Simulation(seed=0)
    sink = MemorySink()
    recorder = Recorder("m1", simulation.kernel, sink)

    async def member() -> None:
        recorder.emit(Layer.OP, Kind.MEMBER_STARTED)
        try:
            await Future("for ever")
        finally:
            recorder.emit(Layer.OP, Kind.MEMBER_CLOSED)

    async def main() -> None:
        simulation.kernel.spawn(member(), "member")
        await simulation.kernel.sleep(1)

    simulation.run(main())
    simulation.close()
    assert [event.kind for event in sink.events] == [Kind.MEMBER_STARTED]


def test_outside_of_a_task_there_is_no_current_one():
    kernel = Simulation(seed=0).kernel
    with pytest.raises(RuntimeError, match="no task of this kernel is running"):
        _ = kernel.current
    assert kernel.current_process is None
