"""Lock, mailbox, flag and first-of, on both drivers; above all when cancelled at a bad moment."""

from __future__ import annotations

from typing import Any

import pytest
from twin_worlds import World, assert_told

from rebalance_lab.kernel import Future, InvalidState, Mailbox, MailboxFull, TaskCancelled
from rebalance_lab.kernel.simulation import Simulation


async def ended(world: World, task: Future[Any], name: str) -> None:
    try:
        await task
    except TaskCancelled as error:
        world.log(f"{name} cancelled: {error.reason}")


def test_a_cancelled_lock_waiter_leaves_the_queue():
    async def story(world: World) -> None:
        lock = world.kernel.lock("l")

        async def locker(name: str) -> None:
            async with lock:
                world.log(f"{name} in")
                await world.sleep(3)
                world.log(f"{name} out")

        async with world.kernel.scope("s") as scope:
            scope.spawn(locker("x"), "x")
            y = scope.spawn(locker("y"), "y")
            scope.spawn(locker("z"), "z")
            await world.sleep(1)
            y.cancel("give up")
        world.log(f"held by {lock.holder}")

    assert_told(story, ["x in", "x out", "z in", "z out", "held by None"])


def test_a_lock_waiter_cancelled_in_the_instant_of_its_turn_has_the_lock_and_gives_it_on():
    """Between the cancelling and the task's next step the lock is handed to it: a task that
    unwound without it would keep it for ever."""

    async def story(world: World) -> None:
        lock = world.kernel.lock("l")

        async def locker(name: str) -> None:
            async with lock:
                world.log(f"{name} in")
                await world.sleep(1)
                world.log(f"{name} out")

        async with world.kernel.scope("s") as scope, lock:
            y = scope.spawn(locker("y"), "y")
            scope.spawn(locker("z"), "z")
            await world.sleep(1)
            y.cancel("give up")

    assert_told(story, ["y in", "z in", "z out"])


def test_a_lock_is_not_reentrant():
    async def story(world: World) -> None:
        lock = world.kernel.lock("l")
        async with lock:
            with pytest.raises(AssertionError, match="task story holds lock l already"):
                async with lock:
                    world.log("not here")
        world.log("released once")

    assert_told(story, ["released once"])


def test_a_cancelled_get_takes_no_item():
    async def story(world: World) -> None:
        box = world.kernel.mailbox("box", 4)
        reader = world.kernel.spawn(box.get(), "reader")
        await world.sleep(1)
        reader.cancel("give up")
        await ended(world, reader, "reader")
        box.put("item")
        world.log(f"{len(box)} kept")
        world.log(await box.get())

    assert_told(story, ["reader cancelled: give up", "1 kept", "item"])


def test_a_get_cancelled_in_the_instant_of_its_item_still_gets_it():
    async def story(world: World) -> None:
        box = world.kernel.mailbox("box", 4)

        async def read() -> None:
            world.log(f"got {await box.get()}")
            await world.sleep(1)
            world.log("not here")

        for order in ("put then cancel", "cancel then put"):
            reader = world.kernel.spawn(read(), "reader")
            await world.sleep(1)
            for act in order.split(" then "):
                if act == "put":
                    box.put(order)
                else:
                    reader.cancel("same instant")
            await ended(world, reader, "reader")
            world.log(f"{len(box)} left")

    assert_told(
        story,
        [
            "got put then cancel",
            "reader cancelled: same instant",
            "0 left",
            "got cancel then put",
            "reader cancelled: same instant",
            "0 left",
        ],
    )


def test_a_get_that_began_with_a_request_pending_still_gets_what_came_before_its_turn():
    async def story(world: World) -> None:
        box = world.kernel.mailbox("box", 4)

        async def read() -> None:
            world.kernel.current.cancel("beforehand")
            world.log(f"got {await box.get()}")
            await world.sleep(1)

        async def feed() -> None:
            box.put("item")

        reader = world.kernel.spawn(read(), "reader")
        world.kernel.spawn(feed(), "feeder")
        await ended(world, reader, "reader")

    assert_told(story, ["got item", "reader cancelled: beforehand"])


def test_an_adapter_takes_without_a_task():
    box: Mailbox[str] = Mailbox("box", 2)
    assert box.take() is None
    box.put("a")
    box.put("b")
    assert [box.take(), box.take(), box.take()] == ["a", "b", None]


def test_waiting_for_what_is_there_goes_on_at_once():
    async def story(world: World) -> None:
        reply: Future[str] = Future("reply")
        reply.set("answer")
        world.kernel.current.cancel("pending: raised at a real wait only")
        world.log(await reply)

    assert_told(story, ["answer"])


def test_items_come_in_order_to_readers_in_order():
    async def story(world: World) -> None:
        box = world.kernel.mailbox("box", 4)

        async def read(name: str) -> None:
            world.log(f"{name} {await box.get()}")

        async with world.kernel.scope("s") as scope:
            for name in "abc":
                scope.spawn(read(name), name)
            await world.sleep(1)
            for item in range(3):
                box.put(item)

    assert_told(story, ["a 0", "b 1", "c 2"])


def test_a_mailbox_past_its_limit_says_whose_reader_stopped():
    async def story(world: World) -> None:
        box = world.kernel.mailbox("events of m1", 2)
        box.put(1)
        box.put(2)
        with pytest.raises(MailboxFull) as caught:
            box.put(3)
        world.log(str(caught.value))
        world.log(f"{await box.get()} {await box.get()} {len(box)}")

    assert_told(story, ["mailbox events of m1 holds its limit of 2; its reader does not keep up", "1 2 0"])


def test_readable_tells_without_taking():
    async def story(world: World) -> None:
        box = world.kernel.mailbox("box", 4)
        waiting = box.readable()
        assert box.readable() is waiting
        world.log(f"{await world.kernel.first(world.sleep(1), waiting)} {waiting.done}")
        box.put("item")
        world.log(f"{await world.kernel.first(world.sleep(1), waiting)} {box.readable().done} {len(box)}")

    assert_told(story, ["0 False", "1 True 1"])


def test_first_leaves_the_losers_armed():
    async def story(world: World) -> None:
        watch = world.never("watch")
        world.log(str(await world.kernel.first(watch, world.sleep(1))))
        world.log(f"armed {not watch.done}")
        watch.set(None)
        world.log(str(await world.kernel.first(world.never(), watch, world.never())))
        with pytest.raises(ValueError, match="nothing would wait for ever"):
            await world.kernel.first()

    assert_told(story, ["1", "armed True", "1"])


def test_first_leaves_nothing_with_a_loser():
    simulation = Simulation(seed=0)
    kernel = simulation.kernel
    watch: Future[None] = Future("watch")
    calls: list[str] = []

    async def main() -> None:
        await kernel.first(watch, kernel.sleep(1_000), kernel.sleep(60_000_000))
        watch.on(lambda _: calls.append("mine"))

    simulation.run(main())
    assert simulation.driver.empty, "the losing sleep must take its timer back"
    assert watch._callbacks is not None and len(watch._callbacks) == 1
    watch.set(None)
    assert calls == ["mine"]


def test_a_cancelled_sleep_leaves_nothing_scheduled():
    simulation = Simulation(seed=0)
    kernel = simulation.kernel

    async def main() -> None:
        task = kernel.spawn(World(kernel, 1_000).worker("w", 60_000), "w")
        await kernel.sleep(1_000)
        task.cancel("enough")
        with pytest.raises(TaskCancelled):
            await task

    simulation.run(main())
    assert simulation.driver.empty
    assert simulation.driver.now_us() == 1_000


def test_time_skips_what_was_cancelled():
    simulation = Simulation(seed=0)
    kernel = simulation.kernel

    async def main() -> int:
        async with kernel.timeout(5_000):
            await kernel.sleep(1_000)
        await kernel.sleep(9_000)
        return kernel.now_us()

    assert simulation.run(main()) == 10_000


def test_a_sleep_counts_from_where_it_was_made():
    simulation = Simulation(seed=0)
    kernel = simulation.kernel

    async def main() -> list[int]:
        early = kernel.sleep(5_000)
        await kernel.sleep(2_000)
        await early
        first = kernel.now_us()
        late = kernel.sleep(1_000)
        await kernel.sleep(4_000)
        await late  # due long ago: at once
        return [first, kernel.now_us()]

    assert simulation.run(main()) == [5_000, 9_000]


def test_a_flag_wakes_all_and_can_be_taken_down():
    async def story(world: World) -> None:
        flag = world.kernel.flag("go")

        async def wait(name: str) -> None:
            await flag.wait()
            world.log(name)

        async with world.kernel.scope("s") as scope:
            scope.spawn(wait("a"), "a")
            scope.spawn(wait("b"), "b")
            flag.clear()
            await world.sleep(1)
            flag.raise_()
            flag.raise_()
        world.log(f"raised {flag.raised}")
        before = flag.wait()
        flag.clear()
        world.log(f"raised {flag.raised}, this raising {before.done}, the next {flag.wait().done}")

    assert_told(story, ["a", "b", "raised True", "raised False, this raising True, the next False"])


def test_a_future_is_completed_once():
    future: Future[int] = Future("answer")
    heard: list[int] = []
    with pytest.raises(InvalidState, match="answer has no result yet"):
        future.result()
    assert repr(future) == "<Future answer: pending>"
    future.on(lambda done: heard.append(1))
    future.off(lambda done: heard.clear())  # was never on
    assert future.set(42)
    assert not future.set(43)
    assert not future.fail(ValueError("late"))
    future.on(lambda done: heard.append(2))
    assert (future.result(), future.error, heard) == (42, None, [1, 2])
    assert repr(future) == "<Future answer: done>"
    failed: Future[int] = Future("other")
    assert failed.fail(ValueError("no"))
    assert isinstance(failed.error, ValueError)
    assert repr(failed) == "<Future other: failed>"
    with pytest.raises(ValueError, match="no"):
        failed.result()
