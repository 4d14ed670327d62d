"""Opening the log of a partition: what is trusted, what is read again, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from log_world import FOLDER, NOW_MS, LogWorld, batch

from rebalance_lab.broker.log.config import LogConfig
from rebalance_lab.broker.log.errors import UnreadableLog
from rebalance_lab.broker.log.log import PartitionLog
from rebalance_lab.wire.kafka.records import batches

SMALL = LogConfig(segment_bytes=400, index_interval_bytes=100)
FIRST = "00000000000000000000"


def written(config: LogConfig = SMALL, *, clean: bool = True, count: int = 12) -> LogWorld:
    """A log of `count` batches of one record, with segments at 0, 3, 6, …, whose process has ended."""
    world = LogWorld(config=config)

    async def story():
        log = await world.open()
        for n in range(count):
            data = batch(b"x" * 50, timestamp_ms=NOW_MS + n, producer_id=5, producer_epoch=0, base_sequence=n)
            await log.append(data, n // 5)
        if clean:
            await world.close()

    world.run(story)
    world.kill()
    return world


def reopened(world: LogWorld) -> PartitionLog:
    """The log in a new process, read from beginning to end."""

    async def story():
        log = await world.open()
        offset = log.start_offset
        while offset < log.end_offset:
            for _, header in batches((await log.read(offset, 1000)).data):
                assert header.base_offset == offset
                offset += 1
        return log

    return world.run(story)


def damage(world: LogWorld, name: str, change: Callable[[bytearray], object]) -> None:
    change(world.disk.files()[f"{FOLDER}/{name}"].data)


def remove(world: LogWorld, name: str) -> None:
    world.disk.delete(f"{FOLDER}/{name}")


def test_a_log_that_was_closed_is_trusted():
    world = written()
    before = world.files()
    log = reopened(world)
    assert (log.start_offset, log.end_offset, log.recovery_point) == (0, 12, 12)
    assert log.base_offsets == (0, 3, 6, 9)
    assert world.warnings == []
    assert world.files() == before
    assert len(before[f"{FIRST}.index"]) == 16, "an entry for each batch but the first"
    assert len(before[f"{FIRST}.timeindex"]) == 24


def test_a_segment_that_was_flushed_before_it_was_closed_has_a_whole_time_index():
    world = LogWorld(config=LogConfig(segment_bytes=400))

    async def story():
        log = await world.open()
        for n in range(4):
            await log.append(batch(b"x" * 50, timestamp_ms=NOW_MS + n), 0)
            await log.flush()
        await world.close()

    world.run(story)
    assert len(world.files()[f"{FIRST}.timeindex"]) == 12, "the entry that closing adds"


def test_a_producers_batches_before_the_start_are_not_its_last_ones():
    """The same sequence numbers were written again after a truncation."""
    world = LogWorld(config=SMALL)
    again = batch(b"x" * 50, producer_id=5, producer_epoch=0, base_sequence=0)

    async def story():
        log = await world.open()
        await log.append(again, 0)
        await log.append(batch(b"y"), 0)
        log.high_watermark = 1
        await log.delete_records(1)
        await log.truncate_to(1)
        assert not (await log.append(again, 1)).duplicate

    world.run(story)
    world.kill()
    log = reopened(world)

    async def repeat():
        assert (await log.append(again, 1))[:2] == (1, 1)

    world.run(repeat)


def test_a_log_whose_process_was_killed_is_as_long_as_before():
    world = written(clean=False)
    log = reopened(world)
    assert (log.end_offset, log.base_offsets, log.leader_epoch) == (12, (0, 3, 6, 9), 2)
    assert log.recovery_point == 0, "nothing was flushed"
    assert world.warnings == []


def test_recovery_begins_at_the_recovery_point():
    world = written(clean=False)
    world.recovery_point = 7
    damage(world, f"{FIRST}.log", lambda data: data.__setitem__(70, data[70] ^ 1))
    assert reopened(world).end_offset == 12, "a segment that was flushed is not read"
    world.recovery_point = 2
    world.kill()
    assert reopened(world).end_offset == 0


@pytest.mark.parametrize("kept", range(1, 118))
def test_a_torn_batch_is_cut_off(kept):
    world = written(clean=False)
    name = "00000000000000000009.log"
    damage(world, name, lambda data: data.__delitem__(slice(2 * len(data) // 3 + kept, None)))
    log = reopened(world)
    assert log.end_offset == 11
    assert world.warnings == [f"{FOLDER}/{name}: {kept} bytes after offset 11 were cut off"]


def test_zeros_after_the_last_batch_are_cut_off():
    world = written(clean=False)
    damage(world, "00000000000000000009.log", lambda data: data.extend(bytes(500)))
    assert reopened(world).end_offset == 12


def test_what_follows_a_lost_batch_goes_too():
    world = written(clean=False)
    damage(world, "00000000000000000003.log", lambda data: data.__delitem__(slice(-1, None)))
    log = reopened(world)
    assert (log.end_offset, log.base_offsets, log.leader_epoch) == (5, (0, 3), 0)
    assert [line.split(": ")[1] for line in world.warnings][1:] == ["deleted, because offsets before it were lost"] * 2


def test_a_segment_that_lost_whole_batches_leaves_a_gap_and_what_follows_goes():
    world = written(clean=False)
    damage(world, "00000000000000000003.log", lambda data: data.__delitem__(slice(-len(data) // 3, None)))
    assert reopened(world).end_offset == 5
    assert all("offsets before it were lost" in line for line in world.warnings)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("name", ["00000000000000000003.index", "00000000000000000003.timeindex"])
@pytest.mark.parametrize(
    "change",
    [lambda data: data.clear(), lambda data: data.extend(b"\xff"), lambda data: data.__setitem__(0, 0x7F), None],
    ids=["empty", "longer", "wrong", "missing"],
)
def test_an_index_that_is_wrong_is_built_again(clean, name, change):
    world = written(clean=clean)
    if f"{FOLDER}/{name}" in world.disk.files() and change is not None:
        damage(world, name, change)
    elif clean:
        remove(world, name)
    log = reopened(world)
    assert log.end_offset == 12

    async def story():
        found = await log.first_since(NOW_MS + 4)
        assert found is not None
        assert found.offset == 4

    world.run(story)


def test_a_place_that_cannot_be_read_is_refused_and_left_as_it_is():
    world = written()
    damage(world, "00000000000000000009.log", lambda data: data.__delitem__(slice(-1, None)))
    before = world.files()
    with pytest.raises(UnreadableLog, match=r"00000000000000000009.log, byte \d+ of \d+: no whole batch begins there"):
        reopened(world)
    assert world.files() == before


def test_messages_of_an_old_format_are_refused_and_left_as_they_are():
    world = written(clean=False)
    damage(world, f"{FIRST}.log", lambda data: data.__setitem__(16, 1))
    before = world.files()
    with pytest.raises(UnreadableLog, match=rf"{FIRST}.log, byte 0: a message set of magic 1"):
        reopened(world)
    assert world.files()[f"{FIRST}.log"] == before[f"{FIRST}.log"]


def test_a_log_without_segments_begins_where_it_should():
    world = written()
    for name in world.files():
        if name.endswith(".log"):
            remove(world, name)
    world.start_offset = 7
    log = reopened(world)
    assert (log.start_offset, log.end_offset, log.base_offsets, log.leader_epoch) == (7, 7, (7,), -1)


def test_a_log_that_ends_before_it_begins_starts_again():
    world = written(clean=False)
    world.start_offset = 40
    log = reopened(world)
    assert (log.start_offset, log.end_offset, log.base_offsets) == (40, 40, (40,))
    assert world.warnings == [f"{FOLDER}: all segments were deleted, because the log ends at 12 and began at 40"]


def test_the_first_segment_may_be_later_than_the_start_offset():
    world = written()
    remove(world, f"{FIRST}.log")
    log = reopened(world)
    assert (log.start_offset, log.end_offset) == (3, 12)
    assert f"{FIRST}.index" not in world.files(), "its log is gone"


@pytest.mark.parametrize("clean", [True, False])
def test_leader_epochs_that_cannot_be_read_are_read_from_the_log(clean):
    world = written(clean=clean)
    damage(world, "leader-epoch-checkpoint", lambda data: data.extend(b"?"))
    log = reopened(world)
    assert [log.end_of_epoch(epoch) for epoch in range(3)] == [(0, 5), (1, 10), (2, 12)]
    assert world.files()["leader-epoch-checkpoint"] == b"0\n3\n0 0\n1 5\n2 10\n"
    assert "leader-epoch-checkpoint" in world.warnings[0]


def test_producers_are_known_again_after_a_crash():
    world = written(clean=False)
    log = reopened(world)
    world.run(lambda: _last_is_known(log, 9, 10, 11))


def test_of_producers_a_clean_shutdown_keeps_the_last_batch():
    world = written()
    log = reopened(world)
    world.run(lambda: _last_is_known(log, 11))


async def _last_is_known(log: PartitionLog, *sequences: int) -> None:
    for n in sequences:
        data = batch(b"x" * 50, timestamp_ms=NOW_MS + n, producer_id=5, producer_epoch=0, base_sequence=n)
        appended = await log.append(data, 2)
        assert (appended.duplicate, appended.first_offset) == (True, n)


def test_a_damaged_snapshot_is_replaced_by_what_the_log_says():
    world = written()
    for name in [name for name in world.files() if name.endswith(".snapshot")]:
        damage(world, name, lambda data: data.__setitem__(3, data[3] ^ 1))
    log = reopened(world)
    assert all("checksum is wrong; the producers are read from the log" in line for line in world.warnings)
    world.run(lambda: _last_is_known(log, 11))


def test_files_of_interrupted_work_go():
    world = written()

    async def story():
        for name in (f"{FIRST}.log.deleted", "leader-epoch-checkpoint.tmp"):
            await (await world.storage.open(f"{FOLDER}/{name}", create=True)).close()

    world.run(story)
    reopened(world)
    assert not [name for name in world.files() if name.endswith((".deleted", ".tmp"))]


def test_an_interrupted_compaction_of_kafkas_is_refused():
    world = written()

    async def story():
        await (await world.storage.open(f"{FOLDER}/{FIRST}.log.swap", create=True)).close()

    world.run(story)
    with pytest.raises(UnreadableLog, match="let Kafka finish that first"):
        reopened(world)


def test_a_snapshot_before_the_start_of_the_log_is_deleted():
    """Found by the machine: torn by a power loss, it was read when the log was truncated below its start."""
    world = written(count=1)

    async def story():
        log = await world.open()
        log.high_watermark = 1
        await log.delete_records(1)

    world.run(story)
    world.kill()
    world.disk.files()[f"{FOLDER}/{FIRST}.snapshot"] = world.disk.files()[f"{FOLDER}/{FIRST}.log"]
    reopened(world)
    assert f"{FIRST}.snapshot" not in world.files()
