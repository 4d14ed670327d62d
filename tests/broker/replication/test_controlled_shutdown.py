"""A broker that closes leaves its partitions to others first, whoever is the controller."""

from __future__ import annotations

import pytest
from cluster_stage import ClusterStage

from rebalance_lab.wire.kafka.error_codes import ErrorCode as E
from rebalance_lab.wire.kafka.messages.controlled_shutdown import ControlledShutdownRequest


async def closed(stage: ClusterStage, broker_id: int) -> list[dict[str, object]]:
    """Close a broker, and wait until it has. Returns its warnings."""
    running = stage.brokers[broker_id]
    running.closing.raise_()
    await stage.until(lambda: running.has_ended, f"the end of broker {broker_id}")
    return running.said("warning")


@pytest.mark.parametrize("controller_closes", [True, False])
def test_a_leader_that_closes_has_a_successor_before_it_ends(controller_closes: bool) -> None:
    async def story(stage: ClusterStage) -> None:
        controller = next(each for each, running in stage.brokers.items() if running.said("elected"))
        others = [each for each in stage.brokers if each != controller]
        first, *rest = [controller, *others] if controller_closes else [*others, controller]
        await stage.create([first, *rest])
        await stage.until(lambda: stage.leads(first), "the leader")
        assert (await stage.produce(first, "a")).error_code == E.NONE
        assert await closed(stage, first) == []
        state = await stage.state()
        assert (state.leader, state.leader_epoch, first in state.isr) == (rest[0], 1, False)
        await stage.until(lambda: stage.leads(rest[0]), "the new leader")
        assert (await stage.produce(rest[0], "b", acks=1)).error_code == E.NONE
        assert await stage.read_log(rest[0]) == ["a", "b"]

    ClusterStage().play(story)


def test_a_broker_that_nobody_can_replace_asks_three_times_and_closes() -> None:
    async def story(stage: ClusterStage) -> None:
        await stage.create([1, 2])
        for each in (3, 2):
            await closed(stage, each)
        began_us = stage.tasks.now_us()
        warnings = await closed(stage, 1)
        assert len(warnings) == 4
        assert "of 1 partitions that it leads: t-0" in str(warnings[0]["message"])
        assert 2_000_000 <= stage.tasks.now_us() - began_us < 4_000_000
        state = await stage.state()
        assert (state.leader, state.isr) == (1, (1,))

    ClusterStage(controlled_shutdown_retry_backoff_ms=1000).play(story)


def test_without_controlled_shutdown_a_leader_just_ends() -> None:
    async def story(stage: ClusterStage) -> None:
        await stage.create([1, 2, 3])
        stage.brokers[1].closing.raise_()
        state = await stage.until_state(lambda state: state.leader == 2)
        assert stage.brokers[1].said("left") == []
        assert state.leader_epoch == 1

    ClusterStage(controlled_shutdown_enable=False).play(story)


def test_a_broker_that_is_not_the_controller_refuses() -> None:
    async def story(stage: ClusterStage) -> None:
        other = next(each for each, running in stage.brokers.items() if not running.said("elected"))
        for version in range(4):
            answer = await stage.ask(other, ControlledShutdownRequest(broker_id=1), version)
            assert answer.error_code == E.STALE_CONTROLLER_EPOCH

    ClusterStage().play(story)
