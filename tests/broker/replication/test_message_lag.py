"""A follower may lack so many records: `replica.lag.max.messages` of 0.8."""

from __future__ import annotations

import msgspec
import pytest
from cluster_stage import ClusterStage

from rebalance_lab.roles.broker import BrokerSpec
from rebalance_lab.subjects.replication.subject import ReplicaOptions
from rebalance_lab.trials.plan import WORLDS, PlanError
from rebalance_lab.trials.scenario import make_plan

#: Leaders look for laggards every half of this.
LAG_MS = 10_000


def link(stage: ClusterStage, *, silent: bool) -> None:
    """Of the leader, which is the controller as well, and a follower. The follower keeps its session."""
    stage.world.network.set_link("host-b1", "host-b3", silent=(silent, silent))


def cluster(messages: int | None) -> ClusterStage:
    return ClusterStage(replica_lag_time_max_ms=LAG_MS, replica_lag_max_messages=messages)


async def stays(stage: ClusterStage) -> bool:
    """Whether a follower that lacks four records is in sync at each look within the time that it may lag."""
    await stage.create([1, 2, 3])
    await stage.produce(1, "a")
    began_us = stage.tasks.now_us()
    link(stage, silent=True)
    await stage.produce(1, "b", "c", "d", "e", acks=1)
    while stage.tasks.now_us() - began_us < 900 * LAG_MS:
        if 3 not in (await stage.state()).isr:
            return False
        await stage.tasks.sleep(100_000)
    return True


@pytest.mark.parametrize(("messages", "expected"), [(3, False), (4, True), (None, True)])
def test_a_follower_that_lacks_more_leaves_the_isr_well_within_its_time(messages: int | None, expected: bool) -> None:
    async def story(stage: ClusterStage) -> None:
        assert await stays(stage) is expected

    cluster(messages).play(story)


def test_it_joins_again_once_it_has_them() -> None:
    async def story(stage: ClusterStage) -> None:
        assert not await stays(stage)
        link(stage, silent=False)
        await stage.until_state(lambda state: set(state.isr) == {1, 2, 3})
        assert await stage.read_log(3) == ["a", "b", "c", "d", "e"]

    cluster(3).play(story)


def test_a_follower_that_does_not_fetch_leaves_it_whatever_it_lacks() -> None:
    async def story(stage: ClusterStage) -> None:
        await stage.create([1, 2, 3])
        await stage.produce(1, "a")
        link(stage, silent=True)
        state = await stage.until_state(lambda state: set(state.isr) == {1, 2})
        assert state.leader_epoch == 0

    cluster(3).play(story)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize(("given", "expected"), [("7", 7), ("0", None)])
def test_a_trial_s_brokers_get_it_in_each_world(world: str, given: str, expected: int | None) -> None:
    plan = make_plan("committed-data", world=world, settings={"lag_messages": given})
    spec = ReplicaOptions(port=9, more={}).spec(plan, "b2", connect="here", events="/trial/b2.jsonl")
    sent = msgspec.json.decode(msgspec.json.encode(spec), type=BrokerSpec)
    assert sent.settings.config.replica_lag_max_messages == expected


def test_kafka_3_9_does_not_have_it() -> None:
    with pytest.raises(PlanError, match=r"lag_messages=7: Kafka 3\.9\.1 does not have this setting"):
        make_plan("controller-race", world="processes", implementation="real", settings={"lag_messages": "7"})
