"""Scopes and cancelling, on both drivers."""

from __future__ import annotations

import pytest
from twin_worlds import World, assert_told

from rebalance_lab.kernel import Cancelled, TaskCancelled, TimedOut
from rebalance_lab.kernel.simulation import Simulation


def test_the_exit_waits_for_every_child():
    async def story(world: World) -> None:
        async with world.kernel.scope("s") as scope:
            scope.spawn(world.worker("slow", 4), "slow")
            scope.spawn(world.worker("quick", 1), "quick")
            world.log("block ended")
        world.log("scope ended")

    assert_told(story, ["block ended", "quick done", "slow done", "scope ended"])


def test_a_failing_child_cancels_siblings_and_owner_and_its_error_comes_plainly():
    async def story(world: World) -> None:
        async def bad() -> None:
            await world.sleep(2)
            raise ValueError("boom")

        try:
            async with world.kernel.scope("s") as scope:
                scope.spawn(world.worker("sibling", 50, cleanup_units=1), "sibling")
                scope.spawn(bad(), "bad")
                try:
                    await world.never()
                except Cancelled as cancelled:
                    world.log(f"owner: {cancelled.reason}")
                    raise
        except ValueError as error:
            world.log(f"raised {error}")
        await world.sleep(1)
        world.log("owner goes on")

    assert_told(
        story,
        [
            "sibling Cancelled: sibling bad failed",
            "owner: child bad failed",
            "sibling cleaned",
            "raised boom",
            "owner goes on",
        ],
    )


def test_a_child_that_fails_while_the_exit_waits():
    async def story(world: World) -> None:
        async def bad() -> None:
            await world.sleep(2)
            raise ValueError("boom")

        try:
            async with world.kernel.scope("s") as scope:
                scope.spawn(bad(), "bad")
                scope.spawn(world.worker("sibling", 50), "sibling")
        except ValueError as error:
            world.log(f"raised {error}")

    assert_told(story, ["sibling Cancelled: sibling bad failed", "raised boom"])


def test_an_awaited_child_that_fails_raises_its_error_once():
    async def story(world: World) -> None:
        async def bad() -> None:
            await world.sleep(1)
            raise ValueError("boom")

        try:
            async with world.kernel.scope("s") as scope:
                child = scope.spawn(bad(), "bad")
                await child
        except ValueError as error:
            world.log(f"raised {error}")
        await world.sleep(1)
        world.log("not cancelled afterwards")

    assert_told(story, ["raised boom", "not cancelled afterwards"])


def test_the_first_error_is_the_scopes_a_later_one_is_dropped():
    async def story(world: World) -> None:
        async def bad(name: str, cleanup_fails: bool) -> None:
            try:
                await world.sleep(1 if not cleanup_fails else 9)
            finally:
                if cleanup_fails:
                    raise KeyError(name)
            raise ValueError(name)

        try:
            async with world.kernel.scope("s") as scope:
                scope.spawn(bad("first", False), "first")
                scope.spawn(bad("second", True), "second")
        except ValueError as error:
            world.log(f"raised {error}")

    assert_told(story, ["raised first"])


def test_an_error_of_the_block_cancels_the_children_and_passes():
    async def story(world: World) -> None:
        try:
            async with world.kernel.scope("s") as scope:
                scope.spawn(world.worker("child", 50, cleanup_units=1), "child")
                await world.sleep(1)
                raise ValueError("block")
        except ValueError as error:
            world.log(f"raised {error}")

    assert_told(story, ["child Cancelled: scope s ended: block", "child cleaned", "raised block"])


def test_a_child_that_fails_because_another_task_was_cancelled_has_failed():
    """TaskCancelled of a task it awaited is the child's error, not its own cancelling."""

    async def story(world: World) -> None:
        other = world.kernel.spawn(world.worker("other", 50), "other")

        async def child() -> None:
            await other

        try:
            async with world.kernel.scope("s") as scope:
                scope.spawn(child(), "child")
                await world.sleep(1)
                other.cancel("not needed")
                await world.never()
        except TaskCancelled as error:
            world.log(str(error))

    assert_told(story, ["other Cancelled: not needed", "task other was cancelled: not needed"])


def test_cancelling_a_child_is_no_error_of_its_scope():
    async def story(world: World) -> None:
        async with world.kernel.scope("s") as scope:
            child = scope.spawn(world.worker("child", 50), "child")
            await world.sleep(1)
            child.cancel("not needed")
            child.cancel("asked twice")
            try:
                await child
            except TaskCancelled as error:
                world.log(f"{error} ({error.reason})")
        world.log("scope ended")

    assert_told(
        story,
        ["child Cancelled: not needed", "task child was cancelled: not needed (not needed)", "scope ended"],
    )


def test_cancel_of_a_scope_stops_the_children_and_lets_the_block_go_on():
    async def story(world: World) -> None:
        async with world.kernel.scope("s") as scope:
            scope.spawn(world.worker("a", 50), "a")
            scope.spawn(world.worker("b", 50), "b")
            await world.sleep(1)
            scope.cancel("shut down")
            await world.sleep(1)
            world.log("block ended")

    assert_told(story, ["a Cancelled: shut down", "b Cancelled: shut down", "block ended"])


def test_a_deadline_over_a_scope_cancels_its_children_and_waits_for_their_cleanup():
    async def story(world: World) -> None:
        try:
            async with world.timeout(3, "work"), world.kernel.scope("s") as scope:
                scope.spawn(world.worker("quick", 1, cleanup_units=1), "quick")
                scope.spawn(world.worker("slow", 50, cleanup_units=2), "slow")
                await world.never()
        except TimedOut as error:
            world.log(str(error).split(" for ")[1])

    assert_told(
        story,
        [
            "quick done",
            "quick cleaned",
            "slow Cancelled: scope s ended: deadline work passed",
            "slow cleaned",
            "work",
        ],
    )


def test_a_deadline_that_passes_while_the_exit_waits():
    async def story(world: World) -> None:
        try:
            async with world.timeout(2, "work"), world.kernel.scope("s") as scope:
                scope.spawn(world.worker("slow", 50, cleanup_units=1), "slow")
        except TimedOut as error:
            world.log(str(error).split(" for ")[1])

    assert_told(story, ["slow Cancelled: deadline work passed", "slow cleaned", "work"])


def test_cleanup_may_await_and_a_second_request_of_one_origin_does_not_disturb_it():
    async def story(world: World) -> None:
        task = world.kernel.spawn(world.worker("w", 50, cleanup_units=3), "w")
        await world.sleep(1)
        task.cancel("first")
        await world.sleep(1)
        task.cancel("second")
        try:
            await task
        except TaskCancelled as error:
            world.log(error.reason)

    assert_told(story, ["w Cancelled: first", "w cleaned", "first"])


def test_a_further_origin_interrupts_cleanup():
    async def story(world: World) -> None:
        task = world.kernel.spawn(world.worker("w", 50, cleanup_units=30), "w")
        await world.sleep(1)
        task.cancel("first")
        await world.sleep(1)
        task.cancel("now really", origin="somebody else")
        try:
            await task
        except TaskCancelled as error:
            world.log(error.reason)

    assert_told(story, ["w Cancelled: first", "now really"])


def test_a_task_cancelled_before_it_began_never_begins():
    async def story(world: World) -> None:
        task = world.kernel.spawn(world.worker("w", 1), "w")
        task.cancel("changed my mind")
        try:
            await task
        except TaskCancelled as error:
            world.log(error.reason)
        task.cancel("too late")

    assert_told(story, ["changed my mind"])


def test_a_task_that_cancels_itself_stops_at_its_next_wait():
    async def story(world: World) -> None:
        async def self_ending() -> None:
            world.kernel.current.cancel("by myself")
            world.log("still here")
            await world.sleep(1)
            world.log("not here")

        try:
            await world.kernel.spawn(self_ending(), "w")
        except TaskCancelled as error:
            world.log(error.reason)

    assert_told(story, ["still here", "by myself"])


def test_spawning_into_a_scope_that_is_failing_or_over():
    async def story(world: World) -> None:
        async def bad() -> None:
            raise ValueError("boom")

        scope = world.kernel.scope("s")
        try:
            async with scope:
                scope.spawn(bad(), "bad")
                try:
                    await world.never()
                finally:
                    scope.spawn(world.worker("late", 50), "late")
                    await world.sleep(1)
        except ValueError as error:
            world.log(f"raised {error}")
        for closed in (scope, world.kernel.scope("never entered")):
            with pytest.raises(RuntimeError) as caught:
                closed.spawn(world.worker("later", 1), "later")
            world.log(str(caught.value))

    assert_told(
        story,
        [
            "raised boom",
            "scope s is not open; cannot spawn later",
            "scope never entered is not open; cannot spawn later",
        ],
    )


def test_an_awaited_foreign_object_fails_the_task_that_did_it():
    class Foreign:
        def __await__(self):
            yield 42

    async def story(world: World) -> None:
        async def careless() -> None:
            try:
                await Foreign()
            finally:
                world.log("closed")

        try:
            await world.kernel.spawn(careless(), "careless")
        except TypeError as error:
            world.log(str(error))

    assert_told(story, ["closed", "task careless awaited 42: only futures of the kernel can be awaited"])


def test_a_task_shows_what_it_waits_for():
    simulation = Simulation(seed=0)

    async def main() -> list[str]:
        task = simulation.kernel.spawn(World(simulation.kernel, 1000).worker("w", 1), "w")
        before = repr(task)
        await simulation.kernel.sleep(10)
        during = repr(task)
        await task
        return [before, during, repr(task)]

    before, during, after = simulation.run(main())
    assert before == "<Task w: ready>"
    assert during == "<Task w: <Sleep ('sleep until', 1000, 'us'): pending>>"
    assert after == "<Task w: done>"
