"""Who asks a task to stop: requests of different blocks do not hide each other."""

from twin_worlds import World, assert_told

from rebalance_lab.kernel import TaskCancelled


def test_a_scope_s_request_does_not_hide_another_s():
    """Clean-up that hangs after its scope's request is still reached by somebody else's."""

    async def story(world: World) -> None:
        try:
            async with world.kernel.scope("s") as scope:
                child = scope.spawn(world.worker("w", 50, cleanup_units=40), "w")
                await world.sleep(1)
                scope.cancel("the scope asks")
                await world.sleep(1)
                child.cancel("somebody else asks")
        finally:
            world.log("scope left")
        try:
            await child
        except TaskCancelled as error:
            world.log(error.reason)

    assert_told(story, ["w Cancelled: the scope asks", "scope left", "somebody else asks"])
