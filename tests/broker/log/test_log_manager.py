"""All logs of a broker in one folder."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from log_world import NOW_MS, LogWorld, batch

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.log.checkpoints import MetaProperties, read_offsets
from rebalance_lab.broker.log.config import LogConfig
from rebalance_lab.broker.log.errors import LogFailed, WrongFolder
from rebalance_lab.broker.log.manager import LogManager, Periods
from rebalance_lab.broker.log.names import InvalidTopic
from rebalance_lab.kernel import RandomStream
from rebalance_lab.world.simulated.disk import DiskSettings

OWNER = MetaProperties(cluster_id="vPeOCWypqUOSepEvx0cbog", broker_id=1)
Story = Callable[[LogManager], Coroutine[Any, Any, None]]

A, B = TopicPartition("a", 0), TopicPartition("b", 3)
SMALL = LogConfig(segment_bytes=300, file_delete_delay_ms=50)
OFTEN = Periods(
    log_flush_scheduler_interval_ms=5,
    log_retention_check_interval_ms=20,
    file_delete_check_interval_ms=10,
    log_flush_offset_checkpoint_interval_ms=8,
    replica_high_watermark_checkpoint_interval_ms=5,
)


class Broker(LogWorld):
    """A broker's folder and its manager; each story is a life."""

    manager: LogManager

    def life(
        self,
        story: Callable[[LogManager], Coroutine[Any, Any, None]],
        *,
        owner: MetaProperties = OWNER,
        close: bool = False,
    ) -> None:
        async def told() -> None:
            self.manager = LogManager(
                self.kernel,
                self.storage,
                self.clock,
                RandomStream(0, "b1", "names"),
                warn=self.warnings.append,
                periods=OFTEN,
            )
            await self.manager.start(owner, lambda _: self.config)
            await story(self.manager)
            if close:
                await self.manager.close(broker_epoch=25)

        self.run(told)
        self.kill()

    def root(self) -> dict[str, bytes]:
        return {path: bytes(file.data) for path, file in self.disk.files().items() if "/" not in path}

    def folders(self) -> tuple[str, ...]:
        return self.disk.listing("").folders


async def two_logs(manager: LogManager) -> None:
    for partition, count in ((A, 5), (B, 9)):
        log = await manager.create(partition, SMALL)
        for _ in range(count):
            await log.append(batch(b"x" * 50), 0)


async def nothing(manager: LogManager) -> None:
    pass


def test_a_new_folder_belongs_to_the_broker():
    broker = Broker()
    broker.life(nothing)
    assert broker.root() == {"meta.properties": b"#\nbroker.id=1\ncluster.id=vPeOCWypqUOSepEvx0cbog\nversion=0\n"}


@pytest.mark.parametrize(
    ("owner", "why"),
    [
        (
            MetaProperties(cluster_id="other", broker_id=1),
            "cluster vPeOCWypqUOSepEvx0cbog, and this is broker 1 of cluster other",
        ),
        (MetaProperties(cluster_id=OWNER.cluster_id, broker_id=2), "belongs to broker 1 of .* and this is broker 2 of"),
    ],
)
def test_a_folder_of_another_broker_is_refused(owner, why):
    broker = Broker()
    broker.life(nothing)
    with pytest.raises(WrongFolder, match=why):
        broker.life(nothing, owner=owner)


def test_a_folder_that_does_not_say_whose_it_is_is_refused():
    broker = Broker()
    broker.life(nothing)
    broker.disk.files()["meta.properties"].data[:] = b"version=1\nnode.id=1\n"
    with pytest.raises(WrongFolder, match=r"meta\.properties of the data folder: it has version 1"):
        broker.life(nothing)


def test_a_clean_shutdown_leaves_kafkas_files():
    broker = Broker(config=SMALL)

    async def story(manager):
        await two_logs(manager)
        log = manager.get(B)
        log.high_watermark = 7
        await log.delete_records(4)

    broker.life(story, close=True)
    root = broker.root()
    assert root[".kafka_cleanshutdown"] == b'{"version":0,"brokerEpoch":25}'
    assert root["recovery-point-offset-checkpoint"] == b"0\n2\na 0 5\nb 3 9\n"
    assert root["replication-offset-checkpoint"] == b"0\n2\na 0 0\nb 3 7\n"
    assert root["log-start-offset-checkpoint"] == b"0\n1\nb 3 4\n"

    async def again(manager):
        assert [(log.start_offset, log.end_offset, log.recovery_point) for log in manager.logs] == [
            (0, 5, 5),
            (4, 9, 9),
        ]
        assert manager.get(B).high_watermark == 7
        assert ".kafka_cleanshutdown" not in broker.root(), "from now on a crash is one"

    broker.life(again)
    assert broker.warnings == []


def test_after_a_crash_logs_are_recovered():
    broker = Broker(config=SMALL)
    broker.life(two_logs)

    async def again(manager):
        assert [log.end_offset for log in manager.logs] == [5, 9]
        assert [log.recovery_point for log in manager.logs] == [0, 0]

    broker.life(again)


def test_one_corrupt_log_does_not_take_the_others_down():
    broker = Broker(config=SMALL)
    broker.life(two_logs, close=True)
    broker.disk.files()["a-0/00000000000000000004.log"].data.pop()

    async def again(manager):
        assert manager.get(B).end_offset == 9
        with pytest.raises(LogFailed, match=r"a-0: a-0/00000000000000000004.log, byte 0 of 117: no whole batch"):
            manager.get(A)
        with pytest.raises(LogFailed, match="a-0"):
            await manager.create(A, SMALL)

    broker.life(again, close=True)
    assert broker.warnings == [f"a-0 cannot be used: {broker.manager.unusable[A]}"]
    assert ".kafka_cleanshutdown" not in broker.root(), "the next start must look at it, too"
    assert read_offsets(broker.root()["recovery-point-offset-checkpoint"])[A] == 5


def test_a_corrupt_log_can_be_deleted():
    broker = Broker(config=SMALL)
    broker.life(two_logs, close=True)
    broker.disk.files()["a-0/00000000000000000004.log"].data.pop()

    async def again(manager):
        await manager.delete(A)
        assert (await manager.create(A, SMALL)).end_offset == 0

    broker.life(again)


def test_a_checkpoint_that_cannot_be_read_is_not_used():
    broker = Broker(config=SMALL)
    broker.life(two_logs, close=True)
    for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint"):
        broker.disk.open(name, create=True).data[:] = b"0\nx"

    async def again(manager):
        assert [(log.end_offset, log.high_watermark) for log in manager.logs] == [(5, 0), (9, 0)]

    broker.life(again)
    assert len(broker.warnings) == 3
    assert all("is not a number; it is not used" in line for line in broker.warnings)


def test_folders_that_are_no_partitions_are_left_alone():
    broker = Broker()
    broker.disk.make_folder("lost+found")
    broker.life(nothing)
    assert broker.warnings == ["lost+found is not a partition's folder, and is left alone"]
    assert broker.folders() == ("lost+found",)


def test_a_deleted_log_is_gone_at_once_and_its_files_later():
    broker = Broker(config=SMALL)

    async def story(manager):
        await two_logs(manager)
        await manager.checkpoint()
        await manager.checkpoint_high_watermarks()
        await manager.delete(A)
        await manager.delete(TopicPartition("never", 0))
        assert manager.get(A) is None
        renamed, kept = broker.folders()
        assert kept == "b-3"
        assert renamed.startswith("a-0.")
        assert renamed.endswith("-delete")
        for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
            assert list(read_offsets(broker.root()[name])) == [B]
        assert (await manager.create(A, SMALL)).end_offset == 0
        async with broker.kernel.scope("care") as scope:
            care = scope.spawn(manager.run(), "care")
            await broker.kernel.sleep(30_000)
            assert renamed in broker.folders(), "not before file.delete.delay.ms"
            await broker.kernel.sleep(40_000)
            care.cancel("enough")
        assert broker.folders() == ("a-0", "b-3")

    broker.life(story)


def test_a_deleted_log_that_is_kept_for_long_holds_up_no_other():
    broker = Broker(config=SMALL)

    async def story(manager):
        await manager.create(A, LogConfig(file_delete_delay_ms=10**12))
        await manager.create(B, SMALL)
        await manager.delete(A)
        await manager.delete(B)
        async with broker.kernel.scope("care") as scope:
            care = scope.spawn(manager.run(), "care")
            await broker.kernel.sleep(200_000)
            care.cancel("enough")
        assert [folder.partition(".")[0] for folder in broker.folders()] == ["a-0"]

    broker.life(story)


def test_a_deletion_that_a_crash_interrupted_goes_on():
    broker = Broker(config=SMALL)

    async def story(manager):
        await two_logs(manager)
        await manager.delete(A)

    broker.life(story)

    async def again(manager):
        assert [log.partition for log in manager.logs] == [B]
        async with broker.kernel.scope("care") as scope:
            care = scope.spawn(manager.run(), "care")
            await broker.kernel.sleep(15_000)
            care.cancel("enough")
        assert broker.folders() == ("b-3",)

    broker.life(again)


def test_a_topic_with_a_bad_name_gets_no_folder():
    broker = Broker()

    async def story(manager):
        with pytest.raises(InvalidTopic, match=r"topic name '\.\./x'"):
            await manager.create(TopicPartition("../x", 0), SMALL)

    broker.life(story)
    assert broker.folders() == ()


def test_a_log_that_cannot_be_made_is_a_definite_error():
    broker = Broker()

    async def story(manager):
        broker.disk.settings = DiskSettings(capacity_bytes=60)
        with pytest.raises(LogFailed, match="cannot create a-0: DiskFull"):
            await manager.create(A, SMALL)
        broker.disk.settings = DiskSettings()
        assert (await manager.create(A, SMALL)).end_offset == 0

    broker.life(story)


def test_closed_segments_are_flushed_soon_and_their_recovery_point_is_written():
    broker = Broker(config=SMALL)

    async def story(manager):
        async with broker.kernel.scope("care") as scope:
            care = scope.spawn(manager.run(), "care")
            await two_logs(manager)
            await broker.kernel.sleep(60_000)
            care.cancel("enough")

    broker.life(story)
    assert broker.root()["recovery-point-offset-checkpoint"] == b"0\n2\na 0 4\nb 3 8\n"


def test_a_full_disk_does_not_end_the_care_of_logs():
    broker = Broker(config=SMALL)

    async def story(manager):
        await two_logs(manager)
        broker.disk.settings = DiskSettings(capacity_bytes=1)
        async with broker.kernel.scope("care") as scope:
            care = scope.spawn(manager.run(), "care")
            await broker.kernel.sleep(20_000)
            assert any(line.startswith("care of logs: DiskFull") for line in broker.warnings)
            broker.disk.settings = DiskSettings()
            await broker.kernel.sleep(30_000)
            care.cancel("enough")

    broker.life(story)
    assert "recovery-point-offset-checkpoint" in broker.root()


def test_flush_ms_makes_records_durable_in_time():
    broker = Broker()

    async def story(manager):
        async with broker.kernel.scope("care") as scope:
            care = scope.spawn(manager.run(), "care")
            log = await manager.create(A, LogConfig(flush_ms=20))
            await log.append(batch(b"x"), 0)
            await broker.kernel.sleep(40_000)
            assert log.recovery_point == 1
            care.cancel("enough")

    broker.life(story)


def test_a_new_configuration_is_kept_to():
    broker = Broker()

    async def story(manager):
        log = await manager.create(A, LogConfig(retention_ms=-1))
        await log.append(batch(b"x", timestamp_ms=NOW_MS - 5000), 0)
        log.high_watermark = 1
        assert await log.delete_old_segments() == 0
        manager.configure("a", LogConfig(retention_ms=1000))
        assert await log.delete_old_segments() == 1

    broker.life(story)
