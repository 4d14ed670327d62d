"""Deadlines, alone and nested, on both drivers."""

from __future__ import annotations

import pytest
from twin_worlds import World, assert_told

from rebalance_lab.kernel import Cancelled, TimedOut
from rebalance_lab.kernel.simulation import Simulation


def test_outer_deadline_fires_through_the_inner_one():
    async def story(world: World) -> None:
        try:
            async with world.timeout(2, "outer"):
                try:
                    async with world.timeout(20, "inner"):
                        await world.never()
                except TimedOut:
                    world.log("inner took it")
        except TimedOut as error:
            world.log(str(error).split(" for ")[1])

    assert_told(story, ["outer"])


def test_inner_deadline_fires_and_the_outer_block_goes_on():
    async def story(world: World) -> None:
        async with world.timeout(40, "outer"):
            try:
                async with world.timeout(2, "inner"):
                    await world.never()
            except TimedOut as error:
                world.log(str(error).split(" for ")[1])
            await world.sleep(2)
            world.log("outer block ended")

    assert_told(story, ["inner", "outer block ended"])


def test_both_deadlines_at_once_the_outer_wins():
    async def story(world: World) -> None:
        try:
            async with world.timeout(3, "outer"):
                try:
                    async with world.timeout(3, "inner"):
                        await world.never()
                except TimedOut:
                    world.log("inner took it")
                    raise
        except TimedOut as error:
            world.log(str(error).split(" for ")[1])

    assert_told(story, ["outer"])


def test_both_requests_before_the_task_runs_the_first_is_raised_where_it_belongs():
    """Both deadlines fire while the process is paused: at resume both requests are there."""

    async def story(world: World) -> None:
        process = world.kernel.process("p")

        async def waiter() -> None:
            try:
                async with world.timeout(3, "outer"):
                    try:
                        async with world.timeout(2, "inner"):
                            await world.never()
                    except TimedOut as error:
                        world.log(str(error).split(" for ")[1])
                    await world.never()
            except TimedOut as error:
                world.log(str(error).split(" for ")[1])

        task = world.kernel.spawn(waiter(), "waiter", process=process)
        await world.sleep(1)
        process.pause()
        await world.sleep(5)
        process.resume()
        await task

    assert_told(story, ["inner", "outer"])


def test_inner_deadline_fires_during_the_outer_ones_cleanup_and_the_outer_wish_goes_first():
    async def story(world: World) -> None:
        try:
            async with world.timeout(2, "outer"):
                try:
                    async with world.timeout(6, "inner"):
                        try:
                            await world.never()
                        finally:
                            world.log("cleaning")
                            try:
                                await world.sleep(20)
                            except Cancelled as cancelled:
                                world.log(cancelled.reason)
                                raise
                except TimedOut:
                    world.log("inner took it")
        except TimedOut as error:
            world.log(str(error).split(" for ")[1])

    assert_told(story, ["cleaning", "deadline inner passed", "outer"])


def test_outer_deadline_fires_during_the_inner_ones_cleanup():
    async def story(world: World) -> None:
        try:
            async with world.timeout(6, "outer"):
                try:
                    async with world.timeout(2, "inner"):
                        try:
                            await world.never()
                        finally:
                            await world.sleep(20)
                except TimedOut:
                    world.log("inner took it")
        except TimedOut as error:
            world.log(str(error).split(" for ")[1])

    assert_told(story, ["outer"])


def test_a_deadline_opened_in_cleanup_is_its_own():
    """Cleanup that bounds its own wait must be told so, not be cut off by the wish it
    already obeys."""

    async def story(world: World) -> None:
        async def owner() -> None:
            try:
                await world.never()
            finally:
                try:
                    async with world.timeout(2, "closing"):
                        await world.never()
                except TimedOut as error:
                    world.log(str(error).split(" for ")[1])
                await world.sleep(1)
                world.log("cleaned")

        task = world.kernel.spawn(owner(), "owner")
        await world.sleep(1)
        task.cancel("enough")
        with pytest.raises(Exception, match="task owner was cancelled: enough"):
            await task

    assert_told(story, ["closing", "cleaned"])


def test_a_result_in_the_same_instant_as_the_deadline_is_kept():
    async def story(world: World) -> None:
        async with world.timeout(20, "reply"):
            reply = world.never("reply")
            deadline_task = world.kernel.current

            async def both() -> None:
                await world.sleep(1)
                reply.set(None)
                deadline_task.cancel("same instant", origin="somebody")

            world.kernel.spawn(both(), "both")
            await reply
            world.log("got it")
            try:
                await world.sleep(1)
            except Cancelled as cancelled:
                world.log(f"then {cancelled.reason}")

    assert_told(story, ["got it", "then same instant"])


def test_a_block_that_ended_in_time_leaves_no_timer():
    simulation = Simulation(seed=0)

    async def main() -> None:
        async with simulation.kernel.timeout(60_000_000):
            await simulation.kernel.sleep(1_000)

    simulation.run(main())
    assert simulation.driver.now_us() == 1_000
    assert simulation.driver.empty


def test_another_error_than_the_deadlines_passes_it():
    async def story(world: World) -> None:
        try:
            async with world.timeout(2, "outer"):
                try:
                    await world.never()
                finally:
                    raise ValueError("cleanup broke")
        except ValueError as error:
            world.log(str(error))

    assert_told(story, ["cleanup broke"])


def test_timed_out_says_how_long_and_for_what():
    assert str(TimedOut(1_500_000, "claim")) == "timed out after 1.5 s for claim"
    assert str(TimedOut(2_000)) == "timed out after 0.002 s"
