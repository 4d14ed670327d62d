"""Shields, and what still works inside them, on both drivers."""

from __future__ import annotations

from twin_worlds import World, assert_told

from rebalance_lab.kernel import TaskCancelled, TimedOut


def test_a_shield_holds_requests_back_until_its_end():
    async def story(world: World) -> None:
        async def careful() -> None:
            async with world.kernel.shield():
                await world.sleep(4)
                world.log("written")
            world.log("shield ended")
            await world.sleep(1)
            world.log("not here")

        task = world.kernel.spawn(careful(), "careful")
        await world.sleep(1)
        task.cancel("stop")
        try:
            await task
        except TaskCancelled as error:
            world.log(error.reason)

    assert_told(story, ["written", "shield ended", "stop"])


def test_a_deadline_inside_a_shield_still_bounds_what_it_holds():
    async def story(world: World) -> None:
        async def careful() -> None:
            async with world.kernel.shield():
                try:
                    async with world.timeout(3, "closing"):
                        await world.never()
                except TimedOut as error:
                    world.log(str(error).split(" for ")[1])
                await world.sleep(1)
                world.log("written")
            await world.sleep(1)

        task = world.kernel.spawn(careful(), "careful")
        await world.sleep(1)
        task.cancel("stop")
        try:
            await task
        except TaskCancelled as error:
            world.log(error.reason)

    assert_told(story, ["closing", "written", "stop"])


def test_a_failing_child_reaches_its_owner_inside_a_shield():
    async def story(world: World) -> None:
        async def bad() -> None:
            await world.sleep(1)
            raise ValueError("boom")

        async with world.kernel.shield():
            try:
                async with world.kernel.scope("s") as scope:
                    scope.spawn(bad(), "bad")
                    await world.never()
            except ValueError as error:
                world.log(f"raised {error}")

    assert_told(story, ["raised boom"])


def test_nested_shields_end_with_the_outer_one():
    async def story(world: World) -> None:
        async def careful() -> None:
            async with world.kernel.shield():
                async with world.kernel.shield():
                    await world.sleep(3)
                await world.sleep(1)
                world.log("written")
            await world.sleep(1)
            world.log("not here")

        task = world.kernel.spawn(careful(), "careful")
        await world.sleep(1)
        task.cancel("stop")
        try:
            await task
        except TaskCancelled as error:
            world.log(error.reason)

    assert_told(story, ["written", "stop"])
