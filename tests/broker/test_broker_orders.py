"""What controllers order a broker to do, and what it has after its end, its session's end and its next start."""

from __future__ import annotations

import pytest
from broker_requests import E, batch, create, fetch, fetched, leadership, produced, values
from broker_stage import BrokerStage

from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.delete_topics import DeleteTopicsRequest
from rebalance_lab.wire.kafka.messages.leader_and_isr import (
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from rebalance_lab.wire.kafka.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from rebalance_lab.wire.payloads import Broker, read_broker

# -- orders of controllers ------------------------------------------------------------------------


def test_a_broker_that_follows_takes_and_gives_no_records() -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        await produced(stage, batch("a"))
        await stage.ask(leadership(2, 1), 4)
        assert (await produced(stage, batch("b"))).error_code == E.NOT_LEADER_OR_FOLLOWER
        (found,) = await fetched(stage, fetch(0))
        assert found.error_code == E.NOT_LEADER_OR_FOLLOWER
        await stage.ask(leadership(1, 2), 4)
        assert (await produced(stage, batch("b"))).base_offset == 1

    BrokerStage().play(story)


@pytest.mark.parametrize(
    ("request_", "whole", "partition"),
    [
        (leadership(2, 5, controller_epoch=0), E.STALE_CONTROLLER_EPOCH, None),
        (leadership(2, 5, broker_epoch=1), E.STALE_BROKER_EPOCH, None),
        (leadership(2, 0), E.NONE, E.STALE_CONTROLLER_EPOCH),
        (leadership(2, 5), E.NONE, E.NONE),
    ],
)
def test_old_orders_change_nothing(
    request_: LeaderAndIsrRequest, whole: ErrorCode, partition: ErrorCode | None
) -> None:
    """Claim E3: a deposed controller, an earlier life of the broker, an earlier election."""

    async def story(stage: BrokerStage) -> None:
        await create(stage)
        answer = await stage.ask(request_, 4)
        assert E(answer.error_code) is whole
        assert [E(each.error_code) for each in answer.partition_errors] == ([] if partition is None else [partition])
        leads = (await produced(stage, batch("a"))).error_code == E.NONE
        assert leads is (partition is not E.NONE)

    BrokerStage().play(story)


def test_a_replica_that_is_stopped_keeps_its_records_unless_it_is_deleted() -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        await produced(stage, batch("a"))
        for delete, epoch, left in ((False, 1, ["a"]), (True, 2, [])):
            state = StopReplicaPartitionState(partition_index=0, leader_epoch=epoch, delete_partition=delete)
            topic = StopReplicaTopicState(topic_name="t", partition_states=(state,))
            stopped = await stage.ask(StopReplicaRequest(controller_id=9, controller_epoch=1, topic_states=(topic,)), 3)
            assert [each.error_code for each in stopped.partition_errors] == [E.NONE]
            assert (await produced(stage, batch("b"))).error_code == E.NOT_LEADER_OR_FOLLOWER
            await stage.ask(leadership(1, epoch + 1), 4)
            (found,) = await fetched(stage, fetch(0))
            assert values(found.records) == left

    BrokerStage().play(story)


def test_a_deleted_topic_that_comes_back_is_empty() -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        await produced(stage, batch("a"))
        await stage.ask(DeleteTopicsRequest(topic_names=("t",), timeout_ms=5000), 5)
        await stage.settle()
        await create(stage)
        (found,) = await fetched(stage, fetch(0))
        assert (found.high_watermark, found.records) == (0, b"")

    BrokerStage().play(story)


# -- a second life --------------------------------------------------------------------------------


@pytest.mark.parametrize("clean", [True, False])
def test_a_broker_that_comes_back_has_its_records_and_leads_again(clean: bool) -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        for each in "abc":
            await produced(stage, batch(each))
        if clean:
            stage.closing.raise_()
            await stage.tasks.sleep(1_000_000)
        stage.process.kill()
        await stage.tasks.sleep(6_000_000)
        await stage.start()
        await stage.parts.topics_without_leaders({"t": [0]}, 5000)
        assert (await produced(stage, batch("d"))).base_offset == 3
        (found,) = await fetched(stage, fetch(0))
        assert values(found.records) == ["a", "b", "c", "d"]

    BrokerStage().play(story)


def test_a_broker_whose_session_expires_goes_on_in_another() -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        epoch = stage.broker.broker_epoch
        session = (await stage.zookeeper.ask(lambda it: it.exists("/brokers/ids/1"))).value
        assert session is not None
        stage.server.expire(session.ephemeral_owner)
        await stage.tasks.sleep(5_000_000)
        assert stage.broker.broker_epoch > epoch
        assert len(stage.said("registered")) == 2
        assert [each["epoch"] for each in stage.said("elected")] == [1, 2]
        assert (await produced(stage, batch("a"))).error_code == E.NONE

    BrokerStage().play(story)


@pytest.mark.parametrize(("host", "registered"), [(None, "host-b1"), ("b1.example", "b1.example")])
def test_a_broker_registers_the_name_it_was_given_or_where_it_listens(host: str | None, registered: str) -> None:
    async def story(stage: BrokerStage) -> None:
        data = (await stage.zookeeper.ask(lambda it: it.get("/brokers/ids/1"))).value.data
        assert read_broker(1, data) == Broker(1, registered, 9092)

    BrokerStage(host=host, controller=False).play(story)


def test_connections_end_with_the_broker() -> None:
    async def story(stage: BrokerStage) -> None:
        connection = await stage.connect()
        stage.closing.raise_()
        await connection.ended

    BrokerStage().play(story)


def test_a_partition_that_others_have_is_not_led_here_and_one_that_nobody_has_is_unknown() -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        state = StopReplicaPartitionState(partition_index=0, leader_epoch=1, delete_partition=False)
        topic = StopReplicaTopicState(topic_name="t", partition_states=(state,))
        await stage.ask(StopReplicaRequest(controller_id=9, controller_epoch=1, topic_states=(topic,)), 3)
        assert (await produced(stage, batch("a"))).error_code == E.NOT_LEADER_OR_FOLLOWER
        assert (await produced(stage, batch("a"), partition=9)).error_code == E.UNKNOWN_TOPIC_OR_PARTITION

    BrokerStage().play(story)


def test_an_order_that_fails_leaves_the_others_of_its_request() -> None:
    """A topic with a name that no folder can have, written to ZooKeeper by hand."""

    async def story(stage: BrokerStage) -> None:
        states = tuple(
            LeaderAndIsrTopicState(topic_name=name, partition_states=leadership(1, 1).topic_states[0].partition_states)
            for name in ("a b", "t")
        )
        asked = LeaderAndIsrRequest(controller_id=9, controller_epoch=1, topic_states=states, live_leaders=())
        answer = await stage.ask(asked, 4)
        assert [E(each.error_code) for each in answer.partition_errors] == [E.UNKNOWN_SERVER_ERROR, E.NONE]
        assert "InvalidTopic" in str(stage.said("warning"))

    BrokerStage().play(story)


def test_a_broker_that_waits_for_zookeeper_can_be_closed() -> None:
    async def story(stage: BrokerStage) -> None:
        session = (await stage.zookeeper.ask(lambda it: it.exists("/brokers/ids/1"))).value
        assert session is not None
        connection = await stage.connect()
        stage.server.expire(session.ephemeral_owner)
        stage.server.hold_connections(stage.process)
        await stage.tasks.sleep(10_000_000)
        assert not connection.ended.done
        stage.closing.raise_()
        await connection.ended

    BrokerStage().play(story)


def test_lost_connections_to_zookeeper_are_reported() -> None:
    async def story(stage: BrokerStage) -> None:
        session = (await stage.zookeeper.ask(lambda it: it.exists("/brokers/ids/1"))).value
        assert session is not None
        stage.server.break_connection(session.ephemeral_owner)
        await stage.tasks.sleep(2_000_000)
        told = [(each["connection"], each["session"]) for each in stage.said("zookeeper")]
        assert told[-2:] == [(each, f"{session.ephemeral_owner:#x}") for each in ("disconnected", "connected")]

    BrokerStage().play(story)
