"""Writes with acks=all while the ISR falls below `min.insync.replicas`."""

from __future__ import annotations

from typing import Any

import pytest
from cluster_stage import T0, ClusterStage

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.replication.isr_changes import IsrWritten
from rebalance_lab.kernel import Task
from rebalance_lab.wire.kafka.error_codes import ErrorCode as E
from rebalance_lab.wire.kafka.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from rebalance_lab.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rebalance_lab.wire.kafka.records import Record, build_batch

LAG_MS = 1000
UP_TO_3_6 = {"lab_commits_under_min_isr": True}


def cluster(**config: Any) -> ClusterStage:
    return ClusterStage(min_insync_replicas=2, replica_lag_time_max_ms=LAG_MS, **config)


def part(stage: ClusterStage, follower: int, *, silent: bool = True) -> None:
    """Cut, or heal, the link between the leader, which is the controller as well, and a follower."""
    stage.world.network.set_link("host-b1", f"host-b{follower}", silent=(silent, silent))


def high_watermark(stage: ClusterStage) -> int:
    return stage.brokers[1].replica().log.high_watermark


def test_from_3_7_on_a_write_whose_isr_shrinks_waits_in_vain() -> None:
    async def story(stage: ClusterStage) -> None:
        await stage.create([1, 2])
        await stage.produce(1, "a")
        part(stage, 2)
        answer = await stage.produce(1, "b", timeout_ms=5000)
        assert (answer.error_code, (await stage.state()).isr) == (E.REQUEST_TIMED_OUT, (1,))
        assert high_watermark(stage) == 1

    cluster().play(story)


def test_from_3_7_on_it_is_acknowledged_if_enough_are_in_sync_again_in_time() -> None:
    async def story(stage: ClusterStage) -> None:
        await stage.create([1, 2])
        await stage.produce(1, "a")
        part(stage, 2)
        waiting = stage.tasks.spawn(stage.produce(1, "b"), "a write that waits")
        await stage.until_state(lambda state: state.isr == (1,))
        part(stage, 2, silent=False)
        assert (await waiting).error_code == E.NONE
        assert set((await stage.state()).isr) == {1, 2}

    cluster().play(story)


def test_up_to_3_6_the_leader_alone_commits_it_and_the_writer_is_told() -> None:
    """`Partition.maybeShrinkIsr` of 0.8.2.2 to 3.6 moves the high watermark after a shrink, whatever the ISR."""

    async def story(stage: ClusterStage) -> None:
        await stage.create([1, 2])
        await stage.produce(1, "a")
        part(stage, 2)
        answer = await stage.produce(1, "b")
        assert answer.error_code == E.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        assert answer.error_message == "the ISR (1,) has fallen below min.insync.replicas since the append"
        assert (high_watermark(stage), (await stage.state()).isr) == (2, (1,))
        assert (await stage.produce(1, "c")).error_code == E.NOT_ENOUGH_REPLICAS
        assert await stage.read_log(1) == ["a", "b"]

    cluster(**UP_TO_3_6).play(story)


@pytest.mark.parametrize("config", [{}, UP_TO_3_6])
def test_a_write_that_asks_the_leader_alone_does_not_mind(config: dict[str, Any]) -> None:
    async def story(stage: ClusterStage) -> None:
        await stage.create([1, 2])
        part(stage, 2)
        await stage.produce(1, "a", acks=1)
        await stage.until_state(lambda state: state.isr == (1,))
        assert (await stage.produce(1, "b", acks=1)).error_code == E.NONE
        assert high_watermark(stage) == (2 if config else 0)

    cluster(**config).play(story)


def test_an_isr_that_shrinks_between_commit_and_answer() -> None:
    """The record is committed while two are in sync. Before the answer goes out the leader hears that its ISR is
    smaller: a race that Kafka has in each version."""

    async def story(stage: ClusterStage) -> None:
        await stage.create([1, 2])
        part(stage, 2)
        waiting = stage.tasks.spawn(stage.produce(1, "a"), "a write that waits")
        replica = stage.brokers[1].replica()
        await stage.until(lambda: replica.log.end_offset == 1, "the append")
        leadership = replica.leadership
        assert leadership is not None
        replica.follower_fetched(2, 1, 1)
        assert replica.log.high_watermark == 1
        await replica.isr_answered(leadership, IsrWritten((1,), leadership.partition_epoch + 1))
        assert (await waiting).error_code == E.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    cluster().play(story)


T1 = TopicPartition("t", 1)
RECORD = build_batch([Record(None, b"a", 1000)])


async def two_partitions(stage: ClusterStage) -> None:
    """Led by broker 1; broker 3 follows in the first, and broker 2 in the second."""
    topic = CreatableTopic(
        name="t",
        num_partitions=-1,
        replication_factor=-1,
        assignments=(
            CreatableReplicaAssignment(partition_index=0, broker_ids=(1, 3)),
            CreatableReplicaAssignment(partition_index=1, broker_ids=(1, 2)),
        ),
        configs=(),
    )
    assert (await stage.ask(1, CreateTopicsRequest(topics=(topic,), timeout_ms=10_000), 6)).topics[0].error_code == 0
    await stage.until(lambda: stage.leads(1) and stage.leads(1, T1), "the leaders")


async def both_written(stage: ClusterStage, timeout_ms: int = 30_000) -> list[E]:
    """Write to both partitions in one request. Returns what became of each."""
    wanted = tuple(PartitionProduceData(index=index, records=RECORD) for index in (0, 1))
    request = ProduceRequest(
        acks=-1, timeout_ms=timeout_ms, topic_data=(TopicProduceData(name="t", partition_data=wanted),)
    )
    answer = await stage.ask(1, request, 9)
    return [E(each.error_code) for each in answer.responses[0].partition_responses]


async def second_commits(stage: ClusterStage) -> Task[list[E]]:
    """A write to both partitions of which only the second is committed, before its ISR shrinks."""
    await two_partitions(stage)
    part(stage, 3)
    waiting = stage.tasks.spawn(both_written(stage, timeout_ms=20_000), "a write that waits")
    replica = stage.brokers[1].replica(T1)
    await stage.until(lambda: replica.log.high_watermark == 1, "the commit of one")
    part(stage, 2)
    await replica.append(RECORD)  # what the follower lacks
    await stage.until_state(lambda state: state.isr == (1,), T1)
    return waiting


def test_what_is_committed_in_time_stays_so_while_another_partition_waits() -> None:
    """`DelayedProduce.tryComplete` decides each partition once."""

    async def story(stage: ClusterStage) -> None:
        waiting = await second_commits(stage)
        part(stage, 3, silent=False)
        assert await waiting == [E.NONE, E.NONE]

    cluster().play(story)


def test_also_if_the_other_one_is_too_late() -> None:
    async def story(stage: ClusterStage) -> None:
        waiting = await second_commits(stage)
        assert await waiting == [E.REQUEST_TIMED_OUT, E.NONE]
        assert len((await stage.state(T0)).isr) == 1

    cluster().play(story)
