"""The log of one partition: truncation, deletion, a disk that fails, and tasks beside each other."""

from __future__ import annotations

import pytest
from log_world import NOW_MS, LogWorld, batch, sent, values

from rebalance_lab.broker.log.config import LogConfig
from rebalance_lab.broker.log.errors import (
    LogFailed,
    OffsetOutOfRange,
)
from rebalance_lab.broker.log.results import Appended, FoundOffset
from rebalance_lab.kernel import Future
from rebalance_lab.wire.kafka.records import batches, check_batch
from rebalance_lab.world.simulated.disk import DiskSettings
from rebalance_lab.world.simulated.storage import SimulatedFile
from rebalance_lab.world.storage import StorageFailure

DAY_MS = 24 * 3600 * 1000


# -- truncate and delete --------------------------------------------------------------------------


@pytest.mark.parametrize("target", range(0, 24, 2))
def test_a_truncated_log_goes_on_from_there(target):
    world = LogWorld(config=LogConfig(segment_bytes=500, index_interval_bytes=100))

    async def story():
        log = await world.open()
        for n in range(12):
            await log.append(batch(b"x" * 40, b"y", timestamp_ms=NOW_MS + n), n)
        log.high_watermark = 20
        await log.flush()
        await log.truncate_to(target)
        assert (log.end_offset, log.high_watermark) == (target, min(target, 20))
        assert log.recovery_point <= target
        assert world.recovery_point <= target, "what a crash would find before"
        assert log.leader_epoch == target // 2 - 1
        assert await log.append(batch(b"new"), 50) == Appended(target, target, -1)
        data = (await log.read(target, 1000)).data
        assert values(data) == [b"new"]
        assert (await log.largest_timestamp()).timestamp == NOW_MS + max(0, target // 2 - 1)

    world.run(story)


def test_a_truncation_beyond_the_end_only_drops_an_epoch_without_records():
    world = LogWorld()

    async def story():
        log = await world.open()
        await log.append(batch(b"a"), 0)
        await log.start_epoch(1)
        await log.truncate_to(5)
        assert (log.end_offset, log.leader_epoch) == (1, 0)

    world.run(story)


def test_a_truncation_forgets_what_producers_wrote_there():
    world = LogWorld(config=LogConfig(segment_bytes=300))

    async def story():
        log = await world.open()
        written = [batch(b"x" * 50, producer_id=5, producer_epoch=0, base_sequence=n) for n in range(6)]
        for each in written:
            await log.append(each, 0)
        await log.truncate_to(3)
        assert (await log.append(written[2], 0)).duplicate
        assert await log.append(written[3], 0) == Appended(3, 3, -1)

    world.run(story)


def test_a_follower_restarts_where_its_leader_begins():
    world = LogWorld(config=LogConfig(segment_bytes=300))

    async def story():
        log = await world.open()
        for _ in range(8):
            await log.append(batch(b"x" * 50), 0)
        await log.restart_at(100)
        assert (log.start_offset, log.end_offset, log.base_offsets, log.leader_epoch) == (100, 100, (100,), -1)
        assert log.high_watermark == 100
        await log.append_replica(sent(b"a", base_offset=100, epoch=7), 7)
        assert log.earliest() == FoundOffset(-1, 100, 7)
        await log.restart_at(4)
        assert (log.start_offset, log.end_offset, log.recovery_point) == (4, 4, 0)
        world.clock.skipped_ms = DAY_MS
        await log.delete_dropped_files()

    world.run(story)
    assert {name for name in world.files() if "log" in name} == {"00000000000000000004.log"}


def test_records_are_deleted_up_to_the_high_watermark():
    world = LogWorld(config=LogConfig(segment_bytes=300))

    async def story():
        log = await world.open()
        for _ in range(8):
            await log.append(batch(b"x" * 50), 0)
        log.high_watermark = 5
        with pytest.raises(OffsetOutOfRange, match="records before 6 cannot go, the high watermark is 5"):
            await log.delete_records(6)
        await log.delete_records(5)
        await log.delete_records(3)
        assert (log.start_offset, world.start_offset) == (5, 5)
        assert await log.delete_old_segments() == 2
        assert log.base_offsets[0] == 4

    world.run(story)


def test_old_segments_go_by_size():
    world = LogWorld(
        config=LogConfig(segment_bytes=300, retention_bytes=500, retention_ms=-1, file_delete_delay_ms=1000)
    )

    async def story():
        log = await world.open()
        for _ in range(10):
            await log.append(batch(b"x" * 50), 0)
        size = log.size
        log.high_watermark = 2
        assert await log.delete_old_segments() == 1, "nothing above the high watermark goes"
        log.high_watermark = 10
        assert await log.delete_old_segments() == 1
        assert log.start_offset == log.base_offsets[0] == 4
        assert 500 <= log.size < size
        assert sorted(name for name in world.files() if name.endswith(".deleted"))
        await log.delete_dropped_files()
        assert any(name.endswith(".deleted") for name in world.files()), "a reader may need them"
        world.clock.skipped_ms = 1001
        await log.delete_dropped_files()
        assert not any(name.endswith(".deleted") for name in world.files())

    world.run(story)


def test_old_segments_go_by_time():
    world = LogWorld(config=LogConfig(segment_bytes=300, retention_ms=DAY_MS))

    async def story():
        log = await world.open()
        for n in range(8):
            await log.append(batch(b"x" * 50, timestamp_ms=NOW_MS + n * 1000), 0)
        log.high_watermark = 8
        assert await log.delete_old_segments() == 0
        world.clock.skipped_ms = DAY_MS + 2500
        assert await log.delete_old_segments() == 1
        world.clock.skipped_ms = 2 * DAY_MS
        assert await log.delete_old_segments() == 3, "the last one is closed first"
        assert (log.base_offsets, log.start_offset, log.end_offset) == ((8,), 8, 8)
        assert await log.delete_old_segments() == 0
        assert log.size == 0

    world.run(story)


def test_without_delete_in_cleanup_policy_nothing_goes_by_time_or_size():
    """A topic that asks for compaction is kept whole, because compaction is not built."""
    config = LogConfig(segment_bytes=300, retention_ms=DAY_MS, retention_bytes=1, cleanup_policy=("compact",))
    world = LogWorld(config=config)

    async def story():
        log = await world.open()
        for _ in range(8):
            await log.append(batch(b"x" * 50), 0)
        log.high_watermark = 8
        world.clock.skipped_ms = 30 * DAY_MS
        assert await log.delete_old_segments() == 0
        await log.delete_records(5)
        assert await log.delete_old_segments() == 2, "what was deleted by request goes"

    world.run(story)


@pytest.mark.parametrize("how", ["retention", "request"])
def test_old_records_go_and_the_leader_s_epoch_stays(how):
    """The epoch has written nothing yet: it starts where the log ends."""
    world = LogWorld(config=LogConfig(segment_bytes=300, retention_ms=DAY_MS))

    async def story():
        log = await world.open()
        for _ in range(4):
            await log.append(batch(b"x" * 50), 0)
        await log.start_epoch(1)
        log.high_watermark = 4
        if how == "retention":
            world.clock.skipped_ms = 2 * DAY_MS
            assert await log.delete_old_segments()
        else:
            await log.delete_records(3)
        assert log.leader_epoch == 1
        assert log.end_of_epoch(1) == (1, 4)

    world.run(story)
    assert b"1 4\n" in world.files()["leader-epoch-checkpoint"]


def test_a_segment_that_is_kept_for_long_holds_up_no_other():
    """Each was dropped with the file.delete.delay.ms of its time."""
    world = LogWorld(config=LogConfig(segment_bytes=300, retention_bytes=1, file_delete_delay_ms=1_000_000))

    async def story():
        log = await world.open()
        for _ in range(6):
            await log.append(batch(b"x" * 50), 0)
        for log.high_watermark in (2, 4):
            assert await log.delete_old_segments() == 1
            log.config = LogConfig(segment_bytes=300, retention_bytes=1, file_delete_delay_ms=1000)
        assert len(deleted()) == 2
        world.clock.skipped_ms = 1001
        await log.delete_dropped_files()
        assert deleted() == {"00000000000000000000.log.deleted"}

    def deleted():
        return {name for name in world.files() if name.endswith(".log.deleted")}

    world.run(story)


# -- the disk -------------------------------------------------------------------------------------


def test_a_full_disk_is_a_definite_error():
    world = LogWorld()

    async def story():
        log = await world.open()
        await log.append(batch(b"a"), 0)
        used = sum(map(len, world.files().values()))
        world.disk.settings = DiskSettings(capacity_bytes=used + 50)
        with pytest.raises(LogFailed, match="events-0: cannot append to it: DiskFull"):
            await log.append(batch(b"b" * 100), 0)
        assert values((await log.read(0, 1000)).data) == [b"a"]
        world.disk.settings = DiskSettings()
        assert await log.append(batch(b"c"), 0) == Appended(1, 1, -1)
        assert world.warnings == []

    world.run(story)


def test_after_a_failed_sync_nothing_more_is_written(monkeypatch):
    world = LogWorld()

    def failed(file):
        future: Future[None] = Future("sync")
        future.fail(StorageFailure("sync", file.path, "Input/output error"))
        return future

    async def story():
        log = await world.open()
        await log.append(batch(b"a"), 0)
        monkeypatch.setattr(SimulatedFile, "sync", failed)
        with pytest.raises(LogFailed, match=r"events-0: cannot flush it: StorageFailure: sync .*: Input/output error"):
            await log.flush()
        monkeypatch.undo()
        for work in (log.append(batch(b"b"), 0), log.flush(), log.truncate_to(0), log.delete_old_segments()):
            with pytest.raises(LogFailed, match=r"cannot be written to: .* start the broker again when the disk works"):
                await work
        assert values((await log.read(0, 1000)).data) == [b"a"]
        assert log.recovery_point == 0
        assert not await log.close(), "the next start must recover it"
        assert len(world.warnings) == 1

    world.run(story)


def test_flush_messages_makes_an_append_durable():
    world = LogWorld(config=LogConfig(flush_messages=2))

    async def story():
        log = await world.open()
        await log.append(batch(b"a"), 0)
        assert log.recovery_point == 0
        await log.append(batch(b"b"), 0)
        assert log.recovery_point == 2

    world.run(story)


def test_a_flush_that_a_truncation_overtook_promises_nothing():
    world = LogWorld(config=LogConfig(segment_bytes=300))

    async def story():
        log = await world.open()
        for _ in range(6):
            await log.append(batch(b"x" * 50), 0)
        async with world.kernel.scope("both") as scope:
            scope.spawn(log.truncate_to(1), "truncate")
            await world.kernel.sleep(1)
            scope.spawn(log.flush(4), "flush")
        assert log.recovery_point <= log.end_offset == 1

    world.run(story)


# -- tasks beside each other ----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_writers_and_readers_do_not_disturb_each_other(seed):
    world = LogWorld(seed, LogConfig(segment_bytes=600, index_interval_bytes=100))

    async def write(log, name):
        for n in range(20):
            await log.append(batch(b"%d %d " % (name, n) + b"x" * 40), 0)

    async def read(log):
        offset = 0
        while offset < 100:
            data = (await log.read(offset, 300)).data
            for at, header in batches(data):
                check_batch(data, at)
                assert header.base_offset == offset
                offset = header.last_offset + 1
            await world.kernel.sleep(30)

    async def story():
        log = await world.open()
        async with world.kernel.scope("all") as scope:
            for name in range(5):
                scope.spawn(write(log, name), f"writer {name}")
                scope.spawn(read(log), f"reader {name}")
        found = values((await log.read(0, 300)).data)
        assert log.end_offset == 100
        assert found

    world.run(story)


@pytest.mark.parametrize("seed", range(10))
def test_readers_that_a_truncation_overtakes_see_one_log_or_the_other(seed):
    world = LogWorld(seed, LogConfig(segment_bytes=600, index_interval_bytes=100))

    async def read(log):
        for _ in range(60):
            offset = min(log.end_offset, 12)
            try:
                data = (await log.read(offset, 700)).data
            except OffsetOutOfRange:
                continue
            found = {value[:3] for value in values(data)}
            assert len(found) <= 1 or offset < 10, found
            await world.kernel.sleep(17)

    async def story():
        log = await world.open()
        for _ in range(20):
            await log.append(batch(b"old" + b"x" * 60), 0)
        async with world.kernel.scope("all") as scope:
            for name in range(4):
                scope.spawn(read(log), f"reader {name}")
            await world.kernel.sleep(200)
            await log.truncate_to(10)
            for _ in range(10):
                await log.append(batch(b"new" + b"y" * 30), 1)

    world.run(story)


def test_a_writer_that_is_cancelled_leaves_the_log_as_it_should_be():
    world = LogWorld()

    async def story():
        log = await world.open()
        await log.append(batch(b"a"), 0)
        writing = world.kernel.spawn(log.append(batch(b"b"), 0), "writer")
        await world.kernel.sleep(5)
        writing.cancel("its client has left")
        await world.kernel.sleep(1000)
        assert log.end_offset == 2
        assert await log.append(batch(b"c"), 0) == Appended(2, 2, -1)
        assert values((await log.read(0, 1000)).data) == [b"a", b"b", b"c"]

    world.run(story)
