"""The log of one partition, on a simulated disk."""

from __future__ import annotations

import google_crc32c
import pytest
from log_world import NOW_MS, LogWorld, batch, offsets, sent, values

from rebalance_lab.broker.log.config import LogConfig, TimestampType
from rebalance_lab.broker.log.errors import (
    BatchRefused,
    OffsetOutOfRange,
    OutOfOrderSequence,
    UnexpectedOffset,
)
from rebalance_lab.broker.log.results import Appended, FoundOffset, UpTo
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.records import Compression, Record, batches, build_batch, check_batch, records

# -- append ---------------------------------------------------------------------------------------


def test_an_append_gives_offsets_and_the_leaders_epoch():
    world = LogWorld()

    async def story():
        log = await world.open()
        assert await log.append(batch(b"a", b"b"), 3) == Appended(0, 1, -1)
        assert await log.append(batch(b"c", compression=Compression.ZSTD), 4) == Appended(2, 2, -1)
        found = await log.read(0, 10_000)
        assert [(header.base_offset, header.leader_epoch) for _, header in batches(found.data)] == [(0, 3), (2, 4)]
        assert values(found.data) == [b"a", b"b", b"c"]
        assert (found.log_start_offset, found.high_watermark, found.log_end_offset) == (0, 0, 3)
        assert [log.end_of_epoch(epoch) for epoch in (2, 3, 4)] == [(2, 0), (3, 2), (4, 3)]

    world.run(story)
    assert world.files()["leader-epoch-checkpoint"] == b"0\n2\n3 0\n4 2\n"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", ErrorCode.CORRUPT_MESSAGE),
        (batch(b"a")[:-1], ErrorCode.CORRUPT_MESSAGE),
        (batch(b"a")[:-1] + b"x", ErrorCode.CORRUPT_MESSAGE),
        (batch(b"a") * 2, ErrorCode.INVALID_RECORD),
        (batch(b"a", base_offset=1), ErrorCode.INVALID_RECORD),
        (batch(b"a", producer_id=5), ErrorCode.INVALID_RECORD),
        (batch(b"a" * 600), ErrorCode.MESSAGE_TOO_LARGE),
        (batch(b"a" * 380), ErrorCode.RECORD_LIST_TOO_LARGE),
        (batch(b"a")[:16] + b"\1" + batch(b"a")[17:], ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
    ],
)
def test_a_batch_that_no_client_may_write_is_refused(data, code):
    world = LogWorld(config=LogConfig(max_message_bytes=500, segment_bytes=400))

    async def story():
        log = await world.open()
        with pytest.raises(BatchRefused, match="events-0: ") as refused:
            await log.append(data, 0)
        assert refused.value.code is code
        assert await log.append(batch(b"next"), 0) == Appended(0, 0, -1)

    world.run(story)


def test_the_largest_timestamp_is_that_of_the_records_and_not_of_the_header():
    """Retention and look-ups by time rest on it."""
    world = LogWorld()

    async def story():
        log = await world.open()
        await log.append(with_max_timestamp(batch(b"a", b"b"), 0), 0)
        ((_, header),) = batches((await log.read(0, 10_000)).data)
        assert header.max_timestamp_ms == NOW_MS
        check_batch((await log.read(0, 10_000)).data)
        assert await log.first_since(NOW_MS) == FoundOffset(NOW_MS, 0, 0)

    world.run(story)


def test_any_negative_producer_id_means_that_there_is_none():
    world = LogWorld()

    async def story():
        log = await world.open()
        for offset in range(3):
            data = batch(b"x%d" % offset, producer_id=-5, producer_epoch=-1, base_sequence=-1)
            assert await log.append(data, 0) == Appended(offset, offset, -1)

    world.run(story)


def with_max_timestamp(data: bytes, timestamp_ms: int) -> bytes:
    changed = bytearray(data)
    changed[35:43] = timestamp_ms.to_bytes(8, "big")
    changed[17:21] = google_crc32c.value(bytes(changed[21:])).to_bytes(4, "big")
    return bytes(changed)


def with_attributes(data: bytes, attributes: int) -> bytes:
    changed = bytearray(data)
    changed[22] |= attributes
    changed[17:21] = google_crc32c.value(bytes(changed[21:])).to_bytes(4, "big")
    return bytes(changed)


@pytest.mark.parametrize(
    ("attributes", "code", "why"),
    [
        (0x08, ErrorCode.INVALID_TIMESTAMP, "has the time of its append"),
        (0x10, ErrorCode.INVALID_TXN_STATE, "this broker serves none"),
        (0x20, ErrorCode.INVALID_RECORD, "control"),
    ],
)
def test_what_only_a_broker_may_say_is_refused(attributes, code, why):
    world = LogWorld()

    async def story():
        log = await world.open()
        with pytest.raises(BatchRefused, match=why) as refused:
            await log.append(with_attributes(batch(b"a"), attributes), 0)
        assert refused.value.code is code

    world.run(story)


def test_a_follower_refuses_what_was_damaged_on_its_way():
    world = LogWorld()

    async def story():
        log = await world.open()
        whole = sent(b"a", base_offset=0)
        with pytest.raises(BatchRefused, match="events-0: the checksum is") as refused:
            await log.append_replica(whole[:-1] + b"x", 0)
        assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
        assert log.end_offset == 0

    world.run(story)


def test_records_carry_the_time_of_their_append_if_the_topic_wants_it():
    world = LogWorld(config=LogConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME))

    async def story():
        log = await world.open()
        world.clock.skipped_ms = 5000
        appended = await log.append(batch(b"a", producer_id=5, producer_epoch=0, base_sequence=0), 0)
        data = (await log.read(0, 1000)).data
        check_batch(data)
        assert NOW_MS + 5000 <= appended.append_time_ms < NOW_MS + 6000
        assert [record.timestamp_ms for record in records(data)] == [appended.append_time_ms]
        world.clock.skipped_ms = 9000
        again = await log.append(batch(b"a", producer_id=5, producer_epoch=0, base_sequence=0), 0)
        assert again == appended._replace(duplicate=True)

    world.run(story)


def test_a_repeated_batch_is_answered_and_not_written():
    world = LogWorld()

    async def story():
        log = await world.open()
        first = batch(b"a", b"b", producer_id=5, producer_epoch=0, base_sequence=0)
        assert await log.append(first, 0) == Appended(0, 1, -1)
        assert await log.append(batch(b"c"), 0) == Appended(2, 2, -1)
        assert (await log.append(first, 0))[:2] == (0, 1)
        assert log.end_offset == 3
        with pytest.raises(OutOfOrderSequence, match="sequence 3 does not follow 1"):
            await log.append(batch(b"d", producer_id=5, producer_epoch=0, base_sequence=3), 0)
        assert await log.append(batch(b"d", producer_id=5, producer_epoch=0, base_sequence=2), 0) == Appended(3, 3, -1)

    world.run(story)


def test_a_follower_writes_what_its_leader_has_sent():
    world = LogWorld()

    async def story():
        log = await world.open()
        one, two, later = (
            sent(b"a", b"b", base_offset=0),
            sent(b"c", base_offset=2, epoch=1),
            sent(b"d", base_offset=3, epoch=2),
        )
        await log.append_replica(one + two + later, 1)
        assert (await log.read(0, 10_000)).data == one + two, "a batch of a leader that is not known yet waits"
        await log.append_replica(later + later[:30], 2)
        assert log.end_offset == 4, "what was cut off waits, too"
        with pytest.raises(UnexpectedOffset, match="offsets 2 to 2 were sent, and 4 is the next one"):
            await log.append_replica(two, 2)
        await log.append_replica(sent(b"e", base_offset=9, epoch=2), 2)
        assert log.end_offset == 10, "a leader's log may have gaps"
        assert log.end_of_epoch(1) == (1, 3)

    world.run(story)


def test_an_epoch_begins_although_nothing_was_written_in_it():
    world = LogWorld()

    async def story():
        log = await world.open()
        await log.append(batch(b"a"), 0)
        await log.start_epoch(2)
        assert log.end_of_epoch(0) == (0, 1)
        assert log.leader_epoch == 2

    world.run(story)
    assert world.files()["leader-epoch-checkpoint"] == b"0\n2\n0 0\n2 1\n"


# -- segments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "config",
    [
        LogConfig(segment_bytes=400),
        LogConfig(segment_index_bytes=16, index_interval_bytes=0),
        LogConfig(segment_ms=2),
    ],
    ids=["size", "index", "time"],
)
def test_a_full_segment_is_followed_by_another(config):
    world = LogWorld(config=config)

    async def story():
        log = await world.open()
        for n in range(12):
            await log.append(batch(b"%03d" % n * 20, timestamp_ms=NOW_MS + n), 0)
        assert len(log.base_offsets) > 2
        assert world.rolled == [log] * (len(log.base_offsets) - 1)
        for n in range(12):
            assert offsets((await log.read(n, 1)).data) == [n]

    world.run(story)


def test_offsets_that_an_index_cannot_hold_begin_a_segment():
    world = LogWorld()

    async def story():
        log = await world.open()
        await log.append_replica(sent(b"a", base_offset=0), 0)
        await log.append_replica(sent(b"b", base_offset=2**31), 0)
        assert log.base_offsets == (0, 2**31)
        assert offsets((await log.read(5, 1000)).data) == [2**31]

    world.run(story)


# -- read -----------------------------------------------------------------------------------------


def test_a_read_gives_whole_batches():
    world = LogWorld(config=LogConfig(index_interval_bytes=150))

    async def story():
        log = await world.open()
        for _ in range(20):
            await log.append(batch(b"x" * 50, b"y"), 0)
        size = log.size // 20
        for offset in range(40):
            first = offset // 2
            for batch_count in (1, 2, 3, 30):
                data = (await log.read(offset, batch_count * size + size - 1)).data
                assert offsets(data) == [2 * n for n in range(first, min(20, first + batch_count))]
                assert len(data) == len(offsets(data)) * size
            assert (await log.read(offset, size - 1, at_least_one=False)).data == b""
            assert offsets((await log.read(offset, 0)).data) == [2 * first]
        assert (await log.read(40, 1000)).data == b""

    world.run(story)


def test_a_consumer_reads_up_to_the_high_watermark():
    world = LogWorld(config=LogConfig(segment_bytes=200))

    async def story():
        log = await world.open()
        for _ in range(6):
            await log.append(batch(b"x" * 20), 0)
        log.high_watermark = 4
        found = [offsets((await log.read(offset, 1000, UpTo.HIGH_WATERMARK)).data) for offset in range(7)]
        assert found == [[0, 1], [1], [2, 3], [3], [], [], []]
        assert offsets((await log.read(4, 1000)).data) == [4, 5]

    world.run(story)


@pytest.mark.parametrize("offset", [-1, 1, 6])
def test_what_the_log_does_not_have_is_out_of_range(offset):
    world = LogWorld()

    async def story():
        log = await world.open()
        for _ in range(5):
            await log.append(batch(b"a"), 0)
        log.high_watermark = 5
        await log.delete_records(2)
        with pytest.raises(OffsetOutOfRange, match=r"offset -?\d is asked for, and there are \[2, 5\)"):
            await log.read(offset, 1000)
        assert offsets((await log.read(2, 1000)).data) == [2, 3, 4]

    world.run(story)


# -- look-ups -------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", list(Compression))
def test_an_offset_is_found_by_time(compression):
    world = LogWorld(config=LogConfig(segment_bytes=500, index_interval_bytes=100))

    async def story():
        log = await world.open()
        for n in range(30):
            times = [NOW_MS + 100 * n, NOW_MS + 100 * n + 50]
            await log.append(
                build_batch([Record(None, b"x" * 9, at) for at in times], compression=compression), n // 10
            )
        assert len(log.base_offsets) > 3
        for n in range(30):
            assert await log.first_since(NOW_MS + 100 * n) == FoundOffset(NOW_MS + 100 * n, 2 * n, n // 10)
            assert (await log.first_since(NOW_MS + 100 * n + 1)).offset == 2 * n + 1
        assert await log.first_since(0) == FoundOffset(NOW_MS, 0, 0)
        assert await log.first_since(NOW_MS + 2951) is None
        assert await log.largest_timestamp() == FoundOffset(NOW_MS + 2950, 59, 2)
        log.high_watermark = 31
        assert (await log.first_since(NOW_MS + 1500, UpTo.HIGH_WATERMARK)).offset == 30
        assert await log.first_since(NOW_MS + 1501, UpTo.HIGH_WATERMARK) is None
        await log.delete_records(21)
        assert await log.first_since(0) == FoundOffset(NOW_MS + 1050, 21, 1)
        assert (log.earliest(), log.latest()) == (FoundOffset(-1, 21, 1), FoundOffset(-1, 60, 2))
        assert log.latest(UpTo.HIGH_WATERMARK).offset == 31

    world.run(story)


def test_times_need_not_increase():
    world = LogWorld(config=LogConfig(index_interval_bytes=0))

    async def story():
        log = await world.open()
        for at in (50, 90, 10, 70, 95, 20):
            await log.append(batch(b"a", timestamp_ms=at), 0)
        assert [(await log.first_since(at)).offset for at in (0, 50, 51, 90, 91)] == [0, 0, 1, 1, 4]
        assert (await log.largest_timestamp()).offset == 4

    world.run(story)
