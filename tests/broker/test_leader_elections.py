"""Leaders that clients and controllers want, with whole brokers on a simulated ZooKeeper."""

from __future__ import annotations

from typing import Any

import pytest
from cluster_stage import ClusterStage

from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

E = ErrorCode
T0 = (TopicPartitions(topic="t", partitions=(0,)),)


async def elect(
    stage: ClusterStage,
    broker_id: int,
    wanted: tuple[TopicPartitions, ...] | None = T0,
    *,
    version: int = 2,
    **more: Any,
) -> tuple[E, dict[tuple[str, int], E]]:
    """The error of the request, and that of each partition."""
    request = ElectLeadersRequest(topic_partitions=wanted, **{"timeout_ms": 10_000, **more})
    answer = await stage.ask(broker_id, request, version)
    results = {
        (topic.topic, each.partition_id): E(each.error_code)
        for topic in answer.replica_election_results
        for each in topic.partition_result
    }
    return E(answer.error_code), results


async def led_by_2(stage: ClusterStage) -> None:
    """Replicas 1, 2, 3; broker 1 bounces, so that broker 2 leads, and all are in sync again."""
    await stage.create((1, 2, 3))
    await stage.until(lambda: stage.leads(1), "the first leader")
    stage.kill(1)
    await stage.until_state(lambda state: state.leader == 2)
    await stage.start(1)
    await stage.until_state(lambda state: len(state.isr) == 3)


@pytest.mark.parametrize("version", range(3))
def test_a_client_has_the_preferred_replica_lead(version: int) -> None:
    async def story(stage: ClusterStage) -> None:
        await led_by_2(stage)
        before = await stage.state()
        assert await elect(stage, stage.controller(), version=version) == (E.NONE, {("t", 0): E.NONE})
        after = await stage.state()
        assert (after.leader, after.leader_epoch) == (1, before.leader_epoch + 1)
        assert after.isr == before.isr
        await stage.until(lambda: stage.leads(1), "the preferred leader")
        assert (await stage.produce(1, "a")).error_code == E.NONE
        assert await elect(stage, stage.controller()) == (E.NONE, {("t", 0): E.ELECTION_NOT_NEEDED})

    ClusterStage(auto_leader_rebalance_enable=False, replica_lag_time_max_ms=2000).play(story)


def test_of_all_partitions_those_that_need_nothing_are_left_out() -> None:
    async def story(stage: ClusterStage) -> None:
        await led_by_2(stage)
        assert await elect(stage, stage.controller(), None) == (E.NONE, {("t", 0): E.NONE})
        assert await elect(stage, stage.controller(), None) == (E.NONE, {})

    ClusterStage(auto_leader_rebalance_enable=False, replica_lag_time_max_ms=2000).play(story)


def test_only_the_controller_elects() -> None:
    async def story(stage: ClusterStage) -> None:
        await stage.create((1, 2, 3))
        other = next(each for each in stage.brokers if each != stage.controller())
        assert await elect(stage, other) == (E.NONE, {("t", 0): E.NOT_CONTROLLER})

    ClusterStage().play(story)


def test_an_election_of_another_type_is_refused() -> None:
    async def story(stage: ClusterStage) -> None:
        await stage.create((1, 2, 3))
        refused = (E.UNKNOWN_SERVER_ERROR, {("t", 0): E.UNKNOWN_SERVER_ERROR})
        assert await elect(stage, stage.controller(), election_type=7) == refused

    ClusterStage().play(story)


def test_an_unclean_election_is_a_client_s_choice() -> None:
    """The topic's settings forbid it, and the client asks for it."""

    async def story(stage: ClusterStage) -> None:
        await stage.create((1, 2))
        await stage.until(lambda: stage.leads(1), "the first leader")
        stage.kill(2)
        await stage.until_state(lambda state: state.isr == (1,))
        assert (await stage.produce(1, "lost")).error_code == E.NONE
        stage.kill(1)
        await stage.until_state(lambda state: state.leader == -1)
        await stage.start(2)
        await stage.until(lambda: len(stage.brokers[3].broker.parts.metadata.nodes) == 2, "the return of broker 2")
        head = stage.controller()
        assert await elect(stage, head) == (E.NONE, {("t", 0): E.PREFERRED_LEADER_NOT_AVAILABLE})
        assert await elect(stage, head, election_type=1) == (E.NONE, {("t", 0): E.NONE})
        after = await stage.state()
        assert (after.leader, after.isr) == (2, (2,))
        assert (await stage.fetch(2, 0)).high_watermark == 0

    ClusterStage().play(story)


def test_the_controller_elects_preferred_leaders_at_its_interval() -> None:
    async def story(stage: ClusterStage) -> None:
        await led_by_2(stage)
        back_us = stage.tasks.now_us()
        await stage.until_state(lambda state: state.leader == 1)
        assert stage.tasks.now_us() - back_us <= 21_000_000

    ClusterStage(replica_lag_time_max_ms=2000, leader_imbalance_check_interval_seconds=20).play(story)


def test_the_controller_leaves_as_much_imbalance_as_it_may() -> None:
    async def story(stage: ClusterStage) -> None:
        await led_by_2(stage)
        await stage.tasks.sleep(60_000_000)
        assert (await stage.state()).leader == 2

    ClusterStage(
        replica_lag_time_max_ms=2000,
        leader_imbalance_check_interval_seconds=20,
        leader_imbalance_per_broker_percentage=100,
    ).play(story)
