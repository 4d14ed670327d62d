"""Pause, resume and kill, on both drivers."""

from __future__ import annotations

from itertools import product

import pytest
from twin_worlds import World, assert_told

from rebalance_lab.kernel import Future, IllegalTransition, Process, ProcessState
from rebalance_lab.kernel.process import TRANSITIONS
from rebalance_lab.kernel.simulation import Simulation


async def beats(world: World, name: str, count: int) -> None:
    try:
        for beat in range(count):
            await world.sleep(3)
            world.log(f"{name}{beat}")
    finally:
        world.log(f"{name} finally")


def test_a_timer_due_during_the_pause_fires_at_resume():
    async def story(world: World) -> None:
        process = world.kernel.process("p")
        task = world.kernel.spawn(beats(world, "p", 2), "beats", process=process)
        await world.sleep(1)
        process.pause()
        await world.sleep(9)
        world.log("resume")
        process.resume()
        await task

    assert_told(story, ["resume", "p0", "p1", "p finally"])


def test_a_timer_due_after_the_pause_is_not_late():
    async def story(world: World) -> None:
        process = world.kernel.process("p")
        world.kernel.spawn(world.worker("p", 6), "w", process=process)
        await world.sleep(1)
        process.pause()
        await world.sleep(2)
        process.resume()
        world.log("resumed")
        await world.sleep(6)
        world.log("end")

    assert_told(story, ["resumed", "p done", "end"])


def test_deliveries_come_before_timers_at_resume_and_a_reply_beats_its_deadline():
    async def story(world: World) -> None:
        process = world.kernel.process("p")
        reply: Future[str] = Future("reply")

        async def request() -> None:
            async with world.timeout(4, "reply"):
                world.log(await reply)

        def answer() -> None:
            reply.set("reply")

        task = world.kernel.spawn(request(), "request", process=process)
        await world.sleep(1)
        process.pause()
        await world.sleep(8)
        process.deliver(lambda: world.log("first packet"))
        process.deliver(answer)
        world.log("resume")
        process.resume()
        await task

    assert_told(story, ["resume", "first packet", "reply"])


def test_timers_of_a_pause_fire_by_due_time():
    async def story(world: World) -> None:
        process = world.kernel.process("p")
        for units in (5, 3, 4):
            world.kernel.spawn(world.worker(f"after {units}", units), f"w{units}", process=process)
        await world.sleep(1)
        process.pause()
        await world.sleep(9)
        process.resume()
        await world.sleep(1)

    assert_told(story, ["after 3 done", "after 4 done", "after 5 done"])


def test_what_was_ready_when_the_pause_began_runs_at_resume():
    async def story(world: World) -> None:
        process = world.kernel.process("p")
        grant: Future[str] = Future("grant")

        async def waiter() -> None:
            world.log(await grant)

        task = world.kernel.spawn(waiter(), "waiter", process=process)
        await world.sleep(1)
        grant.set("granted")
        process.pause()
        await world.sleep(1)
        world.log("resume")
        process.resume()
        await task

    assert_told(story, ["resume", "granted"])


def test_a_delivery_to_a_running_process_is_at_once_and_to_a_killed_one_never():
    async def story(world: World) -> None:
        process = world.kernel.process("p")
        process.deliver(lambda: world.log("at once"))
        process.pause()
        process.deliver(lambda: world.log("held, then lost"))
        process.kill()
        process.deliver(lambda: world.log("never"))
        await world.sleep(1)

    assert_told(story, ["at once"])


def test_a_delivery_at_resume_that_pauses_again_holds_the_rest():
    async def story(world: World) -> None:
        process = world.kernel.process("p")
        world.kernel.spawn(world.worker("w", 2), "w", process=process)
        await world.sleep(1)
        process.pause()
        await world.sleep(3)
        process.deliver(process.pause)
        process.deliver(lambda: world.log("second"))
        process.resume()
        await world.sleep(1)
        world.log(process.state.value)
        process.resume()
        await world.sleep(1)

    assert_told(story, ["paused", "second", "w done"])


def test_kill_runs_no_cleanup():
    async def story(world: World) -> None:
        process = world.kernel.process("q")
        world.kernel.spawn(beats(world, "q", 9), "beats", process=process)
        reply: Future[None] = Future("reply")

        async def waiter() -> None:
            await reply
            world.log("waiter")

        world.kernel.spawn(waiter(), "waiter", process=process)
        await world.sleep(4)
        process.kill()
        reply.set(None)
        await world.sleep(9)
        world.log("end")

    assert_told(story, ["q0", "end"])


def test_kill_of_a_paused_process_loses_what_was_held():
    async def story(world: World) -> None:
        process = world.kernel.process("q")
        world.kernel.spawn(beats(world, "q", 9), "beats", process=process)
        await world.sleep(1)
        process.pause()
        await world.sleep(4)
        process.kill()
        await world.sleep(4)
        world.log("end")

    assert_told(story, ["end"])


def test_a_timer_cancelled_while_a_pause_holds_it_never_fires():
    async def story(world: World) -> None:
        process = world.kernel.process("p")
        timer = world.kernel.call_at(
            world.kernel.now_us() + 2 * world.unit_us, lambda: world.log("fired"), process=process
        )
        process.pause()
        await world.sleep(4)
        timer.cancel()
        timer.cancel()
        process.resume()
        await world.sleep(1)
        world.log("end")

    assert_told(story, ["end"])


def test_children_belong_to_the_process_of_their_scope():
    async def story(world: World) -> None:
        process = world.kernel.process("p")

        async def parent() -> None:
            async with world.kernel.scope("s") as scope:
                scope.spawn(world.worker("child", 3), "child")

        world.kernel.spawn(parent(), "parent", process=process)
        await world.sleep(1)
        process.kill()
        await world.sleep(4)
        world.log("end")

    assert_told(story, ["end"])


def test_a_timer_belongs_to_the_process_that_armed_it():
    async def story(world: World) -> None:
        process = world.kernel.process("p")

        async def arm() -> None:
            world.kernel.call_at(world.kernel.now_us() + 2 * world.unit_us, lambda: world.log("of p"))

        await world.kernel.spawn(arm(), "arm", process=process)
        world.kernel.call_at(world.kernel.now_us() + 2 * world.unit_us, lambda: world.log("of nobody"))
        process.pause()
        await world.sleep(5)
        process.resume()

    assert_told(story, ["of nobody", "of p"])


def in_state(state: ProcessState) -> Process:
    process = Simulation(seed=0).kernel.process("p")
    if state is not ProcessState.RUNNING:
        {ProcessState.PAUSED: process.pause, ProcessState.KILLED: process.kill}[state]()
    return process


@pytest.mark.parametrize(("old", "new"), list(product(ProcessState, ProcessState)))
def test_the_transition_table_is_kept(old: ProcessState, new: ProcessState):
    process = in_state(old)
    heard: list[ProcessState] = []
    process.on_change(heard.append)
    act = {
        ProcessState.RUNNING: process.resume,
        ProcessState.PAUSED: process.pause,
        ProcessState.KILLED: process.kill,
    }[new]
    if new in TRANSITIONS[old]:
        act()
        assert (process.state, heard) == (new, [new])
        assert process.running is (new is ProcessState.RUNNING)
    else:
        with pytest.raises(IllegalTransition, match=f"process p is {old.value}; cannot become {new.value}"):
            act()
        assert (process.state, heard) == (old, [])
    assert repr(process) == f"<Process p: {process.state.value}>"


def test_the_transition_table_names_every_state():
    assert set(TRANSITIONS) == set(ProcessState)
    assert TRANSITIONS[ProcessState.KILLED] == frozenset()
