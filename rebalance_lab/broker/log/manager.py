"""All logs of a broker, in its data folder (`LogManager`, Kafka 3.9.1)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import msgspec

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.log.checkpoints import (
    MalformedFile,
    MetaProperties,
    read_meta,
    read_offsets,
    write_clean_shutdown,
    write_meta,
    write_offsets,
)
from rebalance_lab.broker.log.config import LogConfig
from rebalance_lab.broker.log.errors import LogError, LogFailed, WrongFolder
from rebalance_lab.broker.log.files import delete_file, read_file, replace_file, write_file
from rebalance_lab.broker.log.log import PartitionLog, Surroundings
from rebalance_lab.broker.log.names import (
    CLEAN_SHUTDOWN,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    META_PROPERTIES,
    RECOVERY_POINTS,
    check_topic,
    deleted_folder,
    folder_of,
    is_deleted_folder,
    partition_of,
)
from rebalance_lab.broker.log.opening import LastLife, open_log
from rebalance_lab.kernel import Kernel, RandomStream
from rebalance_lab.world.ports import Clock
from rebalance_lab.world.storage import Storage, StorageError


class Periods(msgspec.Struct, frozen=True, kw_only=True):
    """How often the manager does its work: by Kafka's names and defaults, except for two. Kafka's
    `log.flush.scheduler.interval.ms` is endless, so that `flush.ms` alone has no effect; and it has a timer for each
    file that is to be deleted."""

    log_retention_check_interval_ms: int = 300_000
    log_flush_scheduler_interval_ms: int = 3_000
    log_flush_offset_checkpoint_interval_ms: int = 60_000
    file_delete_check_interval_ms: int = 10_000
    replica_high_watermark_checkpoint_interval_ms: int = 5_000
    producer_id_expiration_check_interval_ms: int = 600_000


class LogManager:
    """The logs of one broker. `start` it, keep `run` running, and `close` it.

    `stream` draws the names of deleted folders. `warn` takes a line for whoever runs the broker.
    """

    def __init__(
        self,
        tasks: Kernel,
        storage: Storage,
        clock: Clock,
        stream: RandomStream,
        *,
        warn: Callable[[str], None],
        periods: Periods | None = None,
    ) -> None:
        #: Why the log of a partition cannot be used, though its folder is there.
        self.unusable: dict[TopicPartition, str] = {}
        #: Why nothing more can be written to the folder; None while the disk works.
        self.failure: str | None = None
        self.failed = tasks.flag("the disk has failed")
        self._tasks = tasks
        self._storage = storage
        self._clock = clock
        self._stream = stream
        self._warn = warn
        self._periods = periods or Periods()
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._written: dict[str, dict[TopicPartition, int]] = {}
        self._naming = tasks.lock("folders of partitions")
        self._checkpointing = tasks.lock("checkpoints")
        self._unflushed: list[PartitionLog] = []
        self._has_rolled = tasks.flag("a segment was closed")
        #: Folders of deleted partitions, and when they may go.
        self._deleted: list[tuple[int, str]] = []
        self._surroundings = Surroundings(tasks, storage, clock, self.checkpoint, self._note_rolled, warn, self._fail)

    @property
    def logs(self) -> tuple[PartitionLog, ...]:
        return tuple(self._logs.values())

    # -- start and end -----------------------------------------------------------------------

    async def start(self, owner: MetaProperties, config_of: Callable[[str], LogConfig]) -> None:
        """Open the logs of all partitions in the folder. `config_of`: the configuration of a topic. A log that cannot
        be opened is `unusable`, and the others are not. Raises WrongFolder and StorageErrors."""
        await self._check_owner(owner)
        clean = await read_file(self._storage, CLEAN_SHUTDOWN) is not None
        if clean:  # a crash from now on is one
            await delete_file(self._storage, CLEAN_SHUTDOWN)
        await self._storage.sync_folder()  # also what a crash has kept from it
        recovery_points, start_offsets, high_watermarks = [
            await self._read_checkpoint(name) for name in (RECOVERY_POINTS, LOG_START_OFFSETS, HIGH_WATERMARKS)
        ]
        for folder in (await self._storage.list()).folders:
            partition = partition_of(folder)
            if is_deleted_folder(folder):
                self._deleted.append((self._clock.wall_ms(), folder))
            elif partition is None:
                self._warn(f"{folder} is not a partition's folder, and is left alone")
            else:
                last_life = LastLife(clean, recovery_points.get(partition, 0), start_offsets.get(partition, 0))
                await self._open(partition, config_of(partition.topic), last_life)
        for log in self.logs:
            committed = high_watermarks.get(log.partition, log.start_offset)
            log.high_watermark = min(max(committed, log.start_offset), log.end_offset)
        await self.checkpoint()

    async def close(self, broker_epoch: int = -1) -> None:
        """Close all logs. If all could be, the next start recovers none. Raises StorageErrors."""
        async with self._naming:
            closed_well = [await log.close() for log in self.logs]
            await self.checkpoint()
            await self.checkpoint_high_watermarks()
            if all(closed_well) and not self.unusable:
                await write_file(self._storage, CLEAN_SHUTDOWN, write_clean_shutdown(broker_epoch), sync=True)
                await self._storage.sync_folder()

    async def run(self) -> None:
        """Flush, delete and write checkpoints when it is time to; until it is cancelled."""
        periods = self._periods
        async with self._tasks.scope("care of logs") as scope:
            scope.spawn(self._flush_rolled(), "flush closed segments")
            for work, period_ms in (
                (self._flush_old, periods.log_flush_scheduler_interval_ms),
                (self._retain, periods.log_retention_check_interval_ms),
                (self._delete_files, periods.file_delete_check_interval_ms),
                (self.checkpoint, periods.log_flush_offset_checkpoint_interval_ms),
                (self.checkpoint_high_watermarks, periods.replica_high_watermark_checkpoint_interval_ms),
                (self._expire_producers, periods.producer_id_expiration_check_interval_ms),
            ):
                scope.spawn(self._every(period_ms, work), work.__name__.strip("_"))

    # -- logs --------------------------------------------------------------------------------

    def get(self, partition: TopicPartition) -> PartitionLog | None:
        """Raises LogFailed if there is one, and it is unusable."""
        if partition in self.unusable:
            raise LogFailed(f"{folder_of(partition)}: {self.unusable[partition]}")
        return self._logs.get(partition)

    async def create(self, partition: TopicPartition, config: LogConfig) -> PartitionLog:
        """The log of a partition, made if it is not there. Raises InvalidTopic and LogFailed."""
        check_topic(partition.topic)
        async with self._naming, self._tasks.shield():
            found = self.get(partition)
            if found is None:
                folder = folder_of(partition)
                with self._failures(f"create {folder}"):
                    await self._storage.make_folder(folder)
                    await self._storage.sync_folder()
                    found = await open_log(self._surroundings, partition, config, LastLife())
                self._logs[partition] = found
            return found

    async def delete(self, partition: TopicPartition) -> None:
        """Delete the log of a partition, at once for all who ask for it, and from the disk a while later. Nothing
        happens if there is none. Raises LogFailed."""
        async with self._naming, self._tasks.shield():
            log = self._logs.pop(partition, None)
            if log is None and self.unusable.pop(partition, None) is None:
                return
            folder, new = folder_of(partition), deleted_folder(partition, self._stream.hex(32))
            if log is not None:
                await log.discard()
            self.unusable[partition] = "it is half deleted"
            with self._failures(f"delete {folder}"):
                await self._storage.rename(folder, new)
                await self._storage.sync_folder()
                del self.unusable[partition]
                await self.checkpoint()
                await self.checkpoint_high_watermarks()  # a new log of this name has none of them
            delay_ms = 0 if log is None else log.config.file_delete_delay_ms
            self._deleted.append((self._clock.wall_ms() + delay_ms, new))

    def configure(self, topic: str, config: LogConfig) -> None:
        """From now on, logs of `topic` keep to `config`."""
        for log in self.logs:
            if log.partition.topic == topic:
                log.config = config

    async def _open(self, partition: TopicPartition, config: LogConfig, last_life: LastLife) -> None:
        try:
            self._logs[partition] = await open_log(self._surroundings, partition, config, last_life)
        except (LogError, StorageError) as error:
            self.unusable[partition] = str(error)
            self._warn(f"{folder_of(partition)} cannot be used: {error}")

    # -- checkpoints -------------------------------------------------------------------------

    async def checkpoint(self) -> None:
        """Write recovery points and start offsets. Raises StorageErrors."""
        await self._write_checkpoint(RECOVERY_POINTS, lambda log: log.recovery_point)
        await self._write_checkpoint(
            LOG_START_OFFSETS,
            lambda log: log.start_offset if log.start_offset > min(log.base_offsets, default=-1) else None,
        )

    async def checkpoint_high_watermarks(self) -> None:
        """Raises StorageErrors."""
        await self._write_checkpoint(HIGH_WATERMARKS, lambda log: log.high_watermark)

    async def _write_checkpoint(self, name: str, value_of: Callable[[PartitionLog], int | None]) -> None:
        async with self._checkpointing, self._tasks.shield():
            written = self._written.get(name, {})
            values = {each: value for each, value in written.items() if each in self.unusable}
            for log in self.logs:
                value = value_of(log)
                if value is not None:
                    values[log.partition] = value
            if values != written:
                await replace_file(self._storage, name, write_offsets(values))
                self._written[name] = values

    async def _read_checkpoint(self, name: str) -> dict[TopicPartition, int]:
        """None of the values are needed for logs to be right: without them, more is read, and more is kept."""
        try:
            self._written[name] = read_offsets(await read_file(self._storage, name) or b"")
        except MalformedFile as error:
            self._warn(f"{name}: {error}; it is not used")
            self._written[name] = {}
        return self._written[name]

    async def _check_owner(self, owner: MetaProperties) -> None:
        data = await read_file(self._storage, META_PROPERTIES)
        if data is None:
            await replace_file(self._storage, META_PROPERTIES, write_meta(owner))
            return
        try:
            found = read_meta(data)
        except MalformedFile as error:
            raise WrongFolder(f"{META_PROPERTIES} of the data folder: {error}") from None
        if found != owner:
            raise WrongFolder(
                f"the data folder belongs to broker {found.broker_id} of cluster {found.cluster_id}, and this is broker"
                f" {owner.broker_id} of cluster {owner.cluster_id}: name another folder"
            )

    # -- care --------------------------------------------------------------------------------

    def _note_rolled(self, log: PartitionLog) -> None:
        self._unflushed.append(log)
        self._has_rolled.raise_()

    async def _flush_rolled(self) -> None:
        while True:
            await self._has_rolled.wait()
            self._has_rolled.clear()
            while self._unflushed:
                await self._with(self._unflushed.pop(0), PartitionLog.flush_rolled)

    async def _flush_old(self) -> None:
        now_ms = self._clock.wall_ms()
        for log in self.logs:
            limit_ms = log.config.flush_ms
            if limit_ms is not None and now_ms - log.last_flush_ms >= limit_ms:
                await self._with(log, PartitionLog.flush)

    async def _retain(self) -> None:
        for log in self.logs:
            await self._with(log, PartitionLog.delete_old_segments)

    async def _expire_producers(self) -> None:
        for log in self.logs:
            log.expire_producers()

    async def _delete_files(self) -> None:
        for log in self.logs:
            await self._with(log, PartitionLog.delete_dropped_files)
        for due in [each for each in self._deleted if each[0] <= self._clock.wall_ms()]:
            _, folder = due
            self._deleted.remove(due)
            for name in (await self._storage.list(folder)).files:
                await self._storage.delete(f"{folder}/{name}")
            await self._storage.delete(folder)

    async def _every(self, period_ms: int, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            await self._tasks.sleep(period_ms * 1000)
            try:
                await work()
            except StorageError as error:
                self._warn(f"care of logs: {error}")
                self._fail(str(error))

    async def _with(self, log: PartitionLog, work: Callable[[PartitionLog], Awaitable[object]]) -> None:
        """One log that fails keeps no other from being cared for."""
        if log.failure is None:
            try:
                await work(log)
            except LogError as error:
                self._warn(str(error))

    @contextmanager
    def _failures(self, what: str) -> Iterator[None]:
        try:
            yield
        except StorageError as error:
            self._fail(f"cannot {what}: {error}")
            raise LogFailed(f"cannot {what}: {error}") from error

    def _fail(self, why: str) -> None:
        """A folder that a write has failed in is not used any more (`LogDirFailureChannel`)."""
        self.failure = self.failure or why
        self.failed.raise_()
