"""Causes: who is the reason for what runs, on both drivers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from twin_worlds import World, assert_told

from rebalance_lab.kernel import Cause, Future, Kernel


@contextmanager
def stimulus(kernel: Kernel, cause: Cause) -> Iterator[None]:
    """Give what is woken in the block a cause."""
    before, kernel.cause = kernel.cause, cause
    try:
        yield
    finally:
        kernel.cause = before


def test_a_task_woken_by_a_future_inherits_the_setters_cause():
    async def story(world: World) -> None:
        kernel = world.kernel
        reply: Future[None] = Future("reply")

        async def waiter() -> None:
            world.log(f"before {kernel.cause}")
            await reply
            world.log(f"after {kernel.cause}")

        with stimulus(kernel, ("m1", 1)):
            task = kernel.spawn(waiter(), "waiter")
        await world.sleep(1)
        with stimulus(kernel, ("zookeeper", 7)):
            reply.set(None)
        assert kernel.cause is None
        await task

    assert_told(story, ["before ('m1', 1)", "after ('zookeeper', 7)"])


def test_timers_and_sleeps_carry_their_cause():
    async def story(world: World) -> None:
        kernel = world.kernel

        async def sleeper() -> None:
            await world.sleep(1)
            world.log(f"slept {kernel.cause}")

        with stimulus(kernel, ("m1", 2)):
            kernel.call_at(kernel.now_us() + 2 * world.unit_us, lambda: world.log(f"timer {kernel.cause}"))
            kernel.spawn(sleeper(), "sleeper")
        kernel.call_at(kernel.now_us() + 4 * world.unit_us, lambda: world.log(f"given {kernel.cause}"), cause=("m2", 3))
        await world.sleep(6)
        world.log(f"story {kernel.cause}")

    assert_told(story, ["slept ('m1', 2)", "timer ('m1', 2)", "given ('m2', 3)", "story None"])


def test_spawned_children_inherit_and_do_not_leak():
    async def story(world: World) -> None:
        kernel = world.kernel

        async def child() -> None:
            world.log(f"child {kernel.cause}")

        async def parent() -> None:
            async with kernel.scope("s") as scope:
                scope.spawn(child(), "child")
            world.log(f"parent {kernel.cause}")

        kernel.stimulated(("m1", 4), lambda: kernel.spawn(parent(), "parent"))
        world.log(f"story {kernel.cause}")
        await world.sleep(1)
        world.log(f"story {kernel.cause}")

    assert_told(story, ["story None", "child ('m1', 4)", "parent ('m1', 4)", "story None"])


def test_a_cancelled_task_unwinds_for_the_cause_of_its_canceller():
    async def story(world: World) -> None:
        kernel = world.kernel

        async def waiter() -> None:
            try:
                await world.never()
            finally:
                world.log(f"cleaning {kernel.cause}")

        task = kernel.spawn(waiter(), "waiter")
        await world.sleep(1)
        with stimulus(kernel, ("runner", 9)):
            task.cancel("stop")
        await world.sleep(1)

    assert_told(story, ["cleaning ('runner', 9)"])


def test_a_delivery_held_by_a_pause_brings_no_stale_cause():
    async def story(world: World) -> None:
        kernel = world.kernel
        process = kernel.process("p")
        process.pause()
        process.deliver(lambda: world.log(f"delivered {kernel.cause}"))
        with stimulus(kernel, ("runner", 1)):
            process.resume()

    assert_told(story, ["delivered None"])
