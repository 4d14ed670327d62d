"""Records as clients produce, fetch and look them up, and what they are told if they may not."""

from __future__ import annotations

from typing import Any

import pytest
from broker_requests import E, batch, create, fetch, fetched, leadership, produce, produced, values
from broker_stage import BrokerStage

from rebalance_lab.broker.log.config import LogConfig
from rebalance_lab.broker.log.log import PartitionLog
from rebalance_lab.broker.log.results import Records
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.fetch import FetchRequest
from rebalance_lab.wire.kafka.messages.init_producer_id import InitProducerIdRequest
from rebalance_lab.wire.kafka.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from rebalance_lab.wire.kafka.messages.produce import ProduceRequest
from rebalance_lab.wire.kafka.records import Compression, Record, build_batch

LATEST, EARLIEST, LARGEST = -1, -2, -3


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


def test_a_fetch_does_not_wait_for_more_than_it_may_get() -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        await produced(stage, batch("a" * 200))
        began_us = stage.tasks.now_us()
        (found,) = await fetched(stage, fetch(0, max_wait_ms=3000, min_bytes=5000, max_bytes=100))
        assert values(found.records) == ["a" * 200]
        assert stage.tasks.now_us() - began_us < 100_000

    BrokerStage().play(story)


def test_a_fetch_that_waits_does_not_read_at_each_append(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads when it begins, and when enough may be there (`DelayedFetch.tryComplete`)."""
    reads: list[int] = []
    read = PartitionLog.read

    async def counted(log: PartitionLog, offset: int, *more: Any, **named: Any) -> Records:
        reads.append(offset)
        return await read(log, offset, *more, **named)

    monkeypatch.setattr(PartitionLog, "read", counted)

    async def story(stage: BrokerStage) -> None:
        await create(stage)
        reader = await stage.connect()
        waiting = reader.request(Call.of(fetch(0, max_wait_ms=60_000, min_bytes=10_000), 12, "c"))
        while not waiting.done:
            await produced(stage, batch("x" * 100))
        found: Any = await waiting
        assert 10_000 <= len(found.responses[0].partitions[0].records) < 10_500
        assert len(reads) == 2

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
        (produce(None), E.INVALID_RECORD),
        (produce(batch("a")[:60]), E.INVALID_RECORD),
        (produce(batch("a")[:16] + b"\1" + batch("a")[17:]), E.INVALID_RECORD),
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


@pytest.mark.parametrize(("version", "code"), [(6, E.UNSUPPORTED_COMPRESSION_TYPE), (7, E.NONE)])
def test_zstd_needs_a_version_that_knows_it(version: int, code: ErrorCode) -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        data = build_batch([Record(None, b"a", 1000)], compression=Compression.ZSTD)
        assert (await produced(stage, data, version)).error_code == code

    BrokerStage().play(story)


def test_too_few_replicas_in_sync() -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        await stage.ask(leadership(1, 1), 4)  # it alone is in sync, of two replicas
        assert (await produced(stage, batch("a"))).error_code == E.NOT_ENOUGH_REPLICAS
        assert (await produced(stage, batch("a"), acks=1)).error_code == E.NONE

    BrokerStage(min_insync_replicas=2).play(story)


def test_no_more_replicas_are_asked_for_than_there_are() -> None:
    """`min.insync.replicas` of 2 for a topic with one replica (`Partition.effectiveMinIsr`)."""

    async def story(stage: BrokerStage) -> None:
        await create(stage)
        assert (await produced(stage, batch("a"))).error_code == E.NONE

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


@pytest.mark.parametrize(("asked_ms", "version"), [(-4, 7), (-9, 7), (-3, 6), (-5, 1)])
def test_a_special_time_that_the_version_does_not_know_is_an_error(asked_ms: int, version: int) -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        await produced(stage, batch("a"))
        assert (await listed(stage, asked_ms, version))[0] == E.UNSUPPORTED_VERSION

    BrokerStage().play(story)


@pytest.mark.parametrize(("version", "code"), [(4, E.LEADER_NOT_AVAILABLE), (5, E.OFFSET_NOT_AVAILABLE)])
def test_a_new_leader_names_no_end_that_may_lie_before_a_known_one(version: int, code: ErrorCode) -> None:
    """KIP-207: it does not know yet how much its predecessor had committed."""

    async def story(stage: BrokerStage) -> None:
        await create(stage)
        await stage.ask(leadership(1, 1, isr=(1, 2)), 4)
        await produced(stage, batch("a"), acks=1)
        assert (await listed(stage, LATEST, version))[::2] == (E.NONE, 0)
        await stage.ask(leadership(1, 2, isr=(1, 2)), 4)
        assert (await listed(stage, LATEST, version))[0] == code
        assert (await listed(stage, 99_000, version))[0] == code
        assert (await listed(stage, EARLIEST, version))[::2] == (E.NONE, 0)
        await stage.ask(leadership(1, 3), 4)
        assert (await listed(stage, LATEST, version))[::2] == (E.NONE, 1)

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


def test_a_new_leader_names_no_largest_time_that_may_be_committed_already() -> None:
    """As for any other time that it does not find below its high watermark (`Partition.fetchOffsetForTimestamp`)."""

    async def story(stage: BrokerStage) -> None:
        await create(stage)
        await stage.ask(leadership(1, 1, isr=(1, 2)), 4)
        await produced(stage, batch("a", at_ms=1000), acks=1)
        assert await listed(stage, LARGEST, 7) == (E.NONE, -1, -1)
        await stage.ask(leadership(1, 2, isr=(1, 2)), 4)
        assert (await listed(stage, LARGEST, 7))[0] == E.OFFSET_NOT_AVAILABLE
        await stage.ask(leadership(1, 3), 4)
        assert await listed(stage, LARGEST, 7) == (E.NONE, 1000, 0)

    BrokerStage().play(story)


def test_a_waiting_fetch_goes_with_its_client() -> None:
    """It would wait for eleven days. A request that is answered soon is carried out all the same."""

    async def story(stage: BrokerStage) -> None:
        await create(stage)
        connection = await stage.connect()
        connection.request(Call.of(fetch(0, max_wait_ms=10**9), 12, "c"))
        await stage.tasks.sleep(1_000_000)
        waiting = [name for name, _ in stage.tasks.waits() if "connection of" in name]
        connection.close()
        await stage.tasks.sleep(1_000_000)
        left = [name for name, _ in stage.tasks.waits() if "connection of" in name]
        assert len(waiting) == len(left) + 1
        connection = await stage.connect()
        connection.request(Call.of(produce(batch("a")), 9, "c"))
        connection.close()
        await stage.tasks.sleep(1_000_000)
        (found,) = await fetched(stage, fetch(0))
        assert values(found.records) == ["a"]

    BrokerStage().play(story)
