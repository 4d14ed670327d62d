"""Records as clients produce, fetch and look them up, and what they are told if they may not."""

from __future__ import annotations

from typing import Any

import pytest
from broker_stage import BrokerStage

from rebalance_lab.broker.log.config import LogConfig
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.create_topics import CreatableTopic, CreateTopicsRequest
from rebalance_lab.wire.kafka.messages.delete_topics import DeleteTopicsRequest
from rebalance_lab.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from rebalance_lab.wire.kafka.messages.init_producer_id import InitProducerIdRequest
from rebalance_lab.wire.kafka.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from rebalance_lab.wire.kafka.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from rebalance_lab.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rebalance_lab.wire.kafka.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from rebalance_lab.wire.kafka.records import Record, batches, build_batch, records

E = ErrorCode
LATEST, EARLIEST, LARGEST = -1, -2, -3


def batch(*values: str, at_ms: int = 1000, **producer: Any) -> bytes:
    return build_batch([Record(None, each.encode(), at_ms) for each in values], **producer)


async def create(stage: BrokerStage, partitions: int = 1, replication: int = 1) -> None:
    topic = CreatableTopic(
        name="t", num_partitions=partitions, replication_factor=replication, assignments=(), configs=()
    )
    created = await stage.ask(CreateTopicsRequest(topics=(topic,), timeout_ms=5000), 6)
    assert created.topics[0].error_code == E.NONE


def produce(data: bytes | None, *, partition: int = 0, acks: int = -1, timeout_ms: int = 1000) -> ProduceRequest:
    wanted = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=partition, records=data),))
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=(wanted,))


async def produced(stage: BrokerStage, data: bytes | None, version: int = 9, **more: Any) -> Any:
    """The answer for the one partition."""
    return (await stage.ask(produce(data, **more), version)).responses[0].partition_responses[0]


def fetch(
    *offsets: int,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    each_bytes: int = 1 << 20,
    **more: Any,
) -> FetchRequest:
    """The partitions 0, 1, … from these offsets on."""
    partitions = tuple(
        FetchPartition(partition=at, fetch_offset=offset, partition_max_bytes=each_bytes, **more)
        for at, offset in enumerate(offsets)
    )
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        topics=(FetchTopic(topic="t", partitions=partitions),),
    )


async def fetched(stage: BrokerStage, request: FetchRequest, version: int = 12) -> Any:
    """The answers for the partitions."""
    return (await stage.ask(request, version)).responses[0].partitions


def values(data: bytes) -> list[str]:
    return [(record.value or b"").decode() for at, _ in batches(data) for record in records(data, at)]


# -- there and back -------------------------------------------------------------------------------


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("version", range(3, 10))
def test_what_is_produced_is_fetched(version: int, acks: int) -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        assert (await produced(stage, batch("a", "b"), version, acks=acks)).base_offset == 0
        answer = await produced(stage, batch("c"), version, acks=acks)
        assert (answer.error_code, answer.base_offset, answer.log_append_time_ms) == (E.NONE, 2, -1)
        (found,) = await fetched(stage, fetch(0))
        assert (found.error_code, found.high_watermark, found.last_stable_offset) == (E.NONE, 3, 3)
        assert values(found.records) == ["a", "b", "c"]

    BrokerStage().play(story)


@pytest.mark.parametrize("version", range(4, 13))
def test_a_reader_gets_on_in_every_version(version: int) -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        for each in "abc":
            await produced(stage, batch(each))
        (found,) = await fetched(stage, fetch(1), version)
        assert values(found.records) == ["b", "c"]

    BrokerStage().play(story)


def test_without_acks_there_is_no_answer() -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        connection = await stage.connect()
        await connection.send(Call.of(produce(batch("a"), acks=0), 9, "c"))
        (found,) = await fetched(stage, fetch(0, max_wait_ms=1000))
        assert values(found.records) == ["a"]
        await connection.send(Call.of(produce(batch("a"), acks=0, partition=7), 9, "c"))
        assert "UNKNOWN" not in await connection.ended
        assert "acks=0, and t-7 was not written" in str(stage.said("connection closed")[0]["why"])

    BrokerStage().play(story)


# -- waiting --------------------------------------------------------------------------------------


def test_a_fetch_waits_for_bytes() -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        reader = await stage.connect()
        waiting = reader.request(Call.of(fetch(0, max_wait_ms=5000), 12, "c"))
        await stage.tasks.sleep(1_000_000)
        assert not waiting.done
        await produced(stage, batch("a"))
        began_us = stage.tasks.now_us()
        found: Any = await waiting
        assert values(found.responses[0].partitions[0].records) == ["a"]
        assert stage.tasks.now_us() - began_us < 1_000_000

    BrokerStage().play(story)


def test_a_fetch_waits_no_longer_than_it_was_told() -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        await produced(stage, batch("a"))
        began_us = stage.tasks.now_us()
        (found,) = await fetched(stage, fetch(0, max_wait_ms=700, min_bytes=10_000))
        assert values(found.records) == ["a"]
        assert 700_000 <= stage.tasks.now_us() - began_us < 800_000

    BrokerStage().play(story)


def test_an_error_does_not_wait() -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        began_us = stage.tasks.now_us()
        found = await fetched(stage, fetch(0, 0, max_wait_ms=60_000))
        assert [each.error_code for each in found] == [E.NONE, E.UNKNOWN_TOPIC_OR_PARTITION]
        assert stage.tasks.now_us() - began_us < 1_000_000

    BrokerStage().play(story)


def test_acks_of_replicas_that_do_not_fetch_come_too_late() -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage, replication=2)
        partition = next(iter(stage.parts.metadata.topics["t"].partitions.values()))
        if partition.leader != 1:
            return
        answer = await produced(stage, batch("a"), timeout_ms=500)
        assert answer.error_code == E.REQUEST_TIMED_OUT
        (found,) = await fetched(stage, fetch(0))
        assert (found.high_watermark, found.records) == (0, b"")

    for seed in range(1, 6):
        BrokerStage(others=(2,), seed=seed).play(story)


# -- sizes ----------------------------------------------------------------------------------------


def test_the_first_batch_comes_whole_and_the_budget_is_for_all() -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage, partitions=3)
        for partition in range(3):
            await produced(stage, batch("x" * 1000), partition=partition)
        first, second, third = await fetched(stage, fetch(0, 0, 0, max_bytes=1))
        assert (values(first.records), second.records, third.records) == (["x" * 1000], b"", b"")
        sizes = [len(each.records) for each in await fetched(stage, fetch(0, 0, 0, max_bytes=2500))]
        assert [bool(each) for each in sizes] == [True, True, False]

    BrokerStage().play(story)


def test_a_batch_that_is_too_large() -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        answer = await produced(stage, batch("x" * 2000))
        assert (answer.error_code, answer.base_offset) == (E.MESSAGE_TOO_LARGE, -1)
        assert "max.message.bytes is 1000" in answer.error_message

    BrokerStage(log=LogConfig(max_message_bytes=1000)).play(story)


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (produce(batch("a"), acks=2), E.INVALID_REQUIRED_ACKS),
        (produce(batch("a"), partition=9), E.UNKNOWN_TOPIC_OR_PARTITION),
        (produce(batch("a")[:-1]), E.CORRUPT_MESSAGE),
        (produce(None), E.CORRUPT_MESSAGE),
    ],
)
def test_what_is_not_written(request_: ProduceRequest, code: ErrorCode) -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        answer = (await stage.ask(request_, 9)).responses[0].partition_responses[0]
        assert E(answer.error_code) is code
        assert answer.error_message
        (found,) = await fetched(stage, fetch(0))
        assert found.high_watermark == 0

    BrokerStage().play(story)


def test_too_few_replicas_in_sync() -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        assert (await produced(stage, batch("a"))).error_code == E.NOT_ENOUGH_REPLICAS
        assert (await produced(stage, batch("a"), acks=1)).error_code == E.NONE

    BrokerStage(min_insync_replicas=2).play(story)


@pytest.mark.parametrize(
    ("offset", "known", "code"),
    [
        (5, {}, E.OFFSET_OUT_OF_RANGE),
        (-1, {}, E.OFFSET_OUT_OF_RANGE),
        (0, {"current_leader_epoch": 4}, E.UNKNOWN_LEADER_EPOCH),
        (0, {"last_fetched_epoch": 4}, E.OFFSET_OUT_OF_RANGE),
    ],
)
def test_what_is_not_read(offset: int, known: dict[str, int], code: ErrorCode) -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        await produced(stage, batch("a"))
        (found,) = await fetched(stage, fetch(offset, **known))
        assert (E(found.error_code), found.records) == (code, b"")

    BrokerStage().play(story)


def test_a_fetch_session_is_not_found() -> None:
    async def story(stage: BrokerStage) -> None:
        asked = FetchRequest(max_wait_ms=0, min_bytes=0, session_id=5, session_epoch=3, topics=())
        assert (await stage.ask(asked, 12)).error_code == E.FETCH_SESSION_ID_NOT_FOUND

    BrokerStage().play(story)


# -- idempotence ----------------------------------------------------------------------------------


def test_a_repeated_batch_is_written_once_and_a_gap_refused() -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        given = await stage.ask(asked, 4)
        assert (given.error_code, given.producer_id, given.producer_epoch) == (E.NONE, 0, 0)
        first = batch("a", producer_id=0, producer_epoch=0, base_sequence=0)
        assert [(await produced(stage, first)).base_offset for _ in range(3)] == [0, 0, 0]
        gap = batch("c", producer_id=0, producer_epoch=0, base_sequence=5)
        assert (await produced(stage, gap)).error_code == E.OUT_OF_ORDER_SEQUENCE_NUMBER
        (found,) = await fetched(stage, fetch(0))
        assert values(found.records) == ["a"]

    BrokerStage().play(story)


def test_producer_ids_are_given_once_also_after_a_restart() -> None:
    async def story(stage: BrokerStage) -> None:
        asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        given = [(await stage.ask(asked, 0)).producer_id for _ in range(3)]
        stage.process.kill()
        await stage.tasks.sleep(6_000_000)
        await stage.start()
        given.append((await stage.ask(asked, 0)).producer_id)
        assert given == [0, 1, 2, 1000]

    BrokerStage().play(story)


def test_transactions_are_not_served() -> None:
    async def story(stage: BrokerStage) -> None:
        asked = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000)
        assert (await stage.ask(asked, 4)).error_code == E.INVALID_REQUEST

    BrokerStage().play(story)


# -- offsets --------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(1, 8))
@pytest.mark.parametrize(
    ("asked_ms", "timestamp_ms", "offset"),
    [(EARLIEST, -1, 0), (LATEST, -1, 4), (0, 1000, 0), (1500, 2000, 2), (2000, 2000, 2), (3001, -1, -1)],
)
def test_offsets_by_time(version: int, asked_ms: int, timestamp_ms: int, offset: int) -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        for at_ms in (1000, 2000):
            await produced(stage, batch("a", "b", at_ms=at_ms))
        assert (await listed(stage, asked_ms, version)) == (E.NONE, timestamp_ms, offset)

    BrokerStage().play(story)


async def listed(stage: BrokerStage, asked_ms: int, version: int) -> tuple[int, int, int]:
    partition = ListOffsetsPartition(partition_index=0, timestamp_ms=asked_ms)
    asked = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name="t", partitions=(partition,)),))
    (found,) = (await stage.ask(asked, version)).topics[0].partitions
    return found.error_code, found.timestamp_ms, found.offset


def test_the_largest_time_is_not_the_last_one() -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        for at_ms in (1000, 3000, 2000):
            await produced(stage, batch("a", at_ms=at_ms))
        assert await listed(stage, LARGEST, 7) == (E.NONE, 3000, 1)

    BrokerStage().play(story)


# -- orders of controllers ------------------------------------------------------------------------


def leadership(leader: int, epoch: int, *, controller_epoch: int = 1, broker_epoch: int = -1) -> LeaderAndIsrRequest:
    state = LeaderAndIsrPartitionState(
        partition_index=0,
        controller_epoch=controller_epoch,
        leader=leader,
        leader_epoch=epoch,
        isr=(leader,),
        partition_epoch=0,
        replicas=(1, 2),
    )
    return LeaderAndIsrRequest(
        controller_id=9,
        controller_epoch=controller_epoch,
        broker_epoch=broker_epoch,
        topic_states=(LeaderAndIsrTopicState(topic_name="t", partition_states=(state,)),),
        live_leaders=(),
    )


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
        told = [each["message"] for each in stage.said("zookeeper")]
        assert told[-2:] == ["the connection to ZooKeeper: disconnected", "the connection to ZooKeeper: connected"]

    BrokerStage().play(story)
