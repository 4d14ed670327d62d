"""The log of one partition (`UnifiedLog`, Kafka 3.9.1).

One task writes at a time; others read beside it, without a lock. A reader that was overtaken by a truncation, or by the
deletion of a segment, begins again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.log.appending import check_client_batch, replica_batches
from rebalance_lab.broker.log.checkpoints import write_epochs
from rebalance_lab.broker.log.config import LogConfig, TimestampType
from rebalance_lab.broker.log.epochs import UNDEFINED_EPOCH, EpochEnd, EpochStart, LeaderEpochs
from rebalance_lab.broker.log.errors import LogError, LogFailed, OffsetOutOfRange, UnreadableLog
from rebalance_lab.broker.log.files import replace_file
from rebalance_lab.broker.log.indexes import NO_TIMESTAMP
from rebalance_lab.broker.log.names import LEADER_EPOCHS, folder_of
from rebalance_lab.broker.log.producers import Producers
from rebalance_lab.broker.log.results import Appended, FoundOffset, Records, UpTo
from rebalance_lab.broker.log.segment import Segment
from rebalance_lab.broker.log.segments import Segments
from rebalance_lab.broker.log.snapshots import Snapshots, replay
from rebalance_lab.kernel import Kernel
from rebalance_lab.wire.kafka.records import (
    BatchHeader,
    InvalidBatch,
    place,
    read_header,
    records,
    set_max_timestamp,
    stamp,
)
from rebalance_lab.world.ports import Clock
from rebalance_lab.world.storage import DiskFull, Storage, StorageError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a log is given. `checkpoint`: make durable the recovery point and the start offset that logs have now;
    `rolled`: a segment was closed, and should be flushed soon; `warn`: takes a line for whoever runs the broker;
    `failed`: takes the reason why the disk cannot be used any more."""

    tasks: Kernel
    storage: Storage
    clock: Clock
    checkpoint: Callable[[], Awaitable[None]]
    rolled: Callable[[PartitionLog], None]
    warn: Callable[[str], None]
    failed: Callable[[str], None]


class PartitionLog:
    """Made by `opening.open_log`. Offsets: `start_offset` is the first that can be read, `end_offset` the next to be
    written. Everything below `recovery_point` is durable.

    `high_watermark`: below it, records are committed. Whoever knows the replicas moves it.
    """

    def __init__(
        self,
        surroundings: Surroundings,
        partition: TopicPartition,
        config: LogConfig,
        *,
        segments: Segments,
        epochs: LeaderEpochs,
        producers: Producers,
        snapshots: Snapshots,
        start_offset: int,
        recovery_point: int,
    ) -> None:
        self.partition = partition
        self.config = config
        self.start_offset = start_offset
        self.end_offset = producers.end_offset
        self.high_watermark = start_offset
        self.recovery_point = recovery_point
        #: Since it was opened.
        self.bytes_written = 0
        self.last_flush_ms = surroundings.clock.wall_ms()
        #: Why nothing can be written any more; None while the disk works.
        self.failure: str | None = None
        self._name = folder_of(partition)
        self._around = surroundings
        self._segments = segments
        self._epochs = epochs
        self._producers = producers
        self._snapshots = snapshots
        self._writing = surroundings.tasks.lock(f"writer of {self._name}")
        self._flushing = surroundings.tasks.lock(f"flusher of {self._name}")

    def __repr__(self) -> str:
        return f"<PartitionLog {self._name} [{self.start_offset}, {self.end_offset})>"

    @property
    def size(self) -> int:
        """Bytes of its batches."""
        return self._segments.size

    @property
    def base_offsets(self) -> tuple[int, ...]:
        """Of its segments."""
        return tuple(each.base_offset for each in self._segments.all)

    @property
    def leader_epoch(self) -> int:
        """The latest epoch of a leader that has written; -1 without one."""
        return self._epochs.latest

    # -- write -------------------------------------------------------------------------------

    async def append(self, data: bytes, leader_epoch: int) -> Appended:
        """As the leader in `leader_epoch`: give a client's batch its offsets, and write it. Raises LogErrors. Nothing
        was written then, unless the log has failed."""
        largest_ms = check_client_batch(data, self.config, self._name)
        async with self._writing, self._around.tasks.shield():
            now_ms, append_time_ms = self._around.clock.wall_ms(), NO_TIMESTAMP
            if self.config.message_timestamp_type is TimestampType.LOG_APPEND_TIME:
                append_time_ms = now_ms
            batch = bytearray(data)
            place(batch, 0, base_offset=self.end_offset, leader_epoch=leader_epoch)
            if append_time_ms != NO_TIMESTAMP:
                stamp(batch, 0, append_time_ms=append_time_ms)
            elif largest_ms != read_header(batch).max_timestamp_ms:  # retention and look-ups by time rest on it
                set_max_timestamp(batch, 0, largest_ms)
            header = read_header(batch)
            if header.has_producer_id:
                known = self._producers.duplicate_of(header)
                if known is not None:
                    return Appended(known.first_offset, known.last_offset, known.timestamp_ms, duplicate=True)
                self._producers.check(header)
            await self._write(bytes(batch), [header], now_ms)
            return Appended(header.base_offset, header.last_offset, append_time_ms)

    async def append_replica(self, data: bytes, leader_epoch: int) -> None:
        """As a follower, which knows the leader of `leader_epoch`: write what it has sent, as it is. Raises LogErrors.
        Nothing was written then, unless the log has failed."""
        async with self._writing, self._around.tasks.shield():
            headers = replica_batches(data, self.config, self._name, self.end_offset, leader_epoch)
            if headers:
                await self._write(data[: sum(each.size for each in headers)], headers, self._around.clock.wall_ms())

    async def start_epoch(self, leader_epoch: int) -> None:
        """This broker leads from the end offset on. Raises LogFailed."""
        async with self._writing, self._around.tasks.shield():
            self._check_failure()
            with self._failures("write its leader epochs", DiskFull):
                await self._assign_epochs([EpochStart(leader_epoch, self.end_offset)])

    async def _write(self, data: bytes, headers: list[BatchHeader], now_ms: int) -> None:
        last_offset, timestamp = headers[-1].last_offset, max(each.max_timestamp_ms for each in headers)
        self._check_failure()
        with self._failures("append to it", DiskFull):
            await self._assign_epochs([EpochStart(each.leader_epoch, each.base_offset) for each in headers])
            if self._segments.active.should_roll(self.config, len(data), last_offset, timestamp, now_ms):
                await self._roll(headers[0].base_offset, now_ms)
            await self._segments.active.append(data, headers)
        self.end_offset = last_offset + 1
        self.bytes_written += len(data)
        for header in headers:
            self._producers.add(header)
        limit = self.config.flush_messages
        if limit is not None and self.end_offset - self.recovery_point >= limit:
            await self.flush()

    async def _assign_epochs(self, starts: list[EpochStart]) -> None:
        if all(each.epoch in (self._epochs.latest, UNDEFINED_EPOCH) for each in starts):
            return
        epochs = LeaderEpochs(self._epochs.entries)
        for each in starts:
            if each.epoch != UNDEFINED_EPOCH:
                epochs.assign(*each)
        await keep_epochs(self._around.storage, self._segments.folder, epochs)
        self._epochs = epochs

    async def _roll(self, base_offset: int, now_ms: int) -> None:
        """Begin a new segment."""
        last = self._segments.active
        await self._segments.open(base_offset, self.config, now_ms, empty=True)
        last.seal()
        self._producers.end_offset = base_offset
        await self._snapshots.write(self._producers)
        self._around.rolled(self)

    # -- flush -------------------------------------------------------------------------------

    async def flush(self, end_offset: int | None = None) -> None:
        """Make all offsets below `end_offset` durable; left out, all that were written. Raises LogFailed."""
        async with self._flushing, self._around.tasks.shield():
            end = self.end_offset  # it may have been truncated since
            await self._flush(end if end_offset is None else min(end_offset, end))

    async def flush_rolled(self) -> None:
        """Make durable what is in segments that are not written to any more. Raises LogFailed."""
        await self.flush(self._segments.active.base_offset)

    async def _flush(self, end_offset: int) -> None:
        self._check_failure()
        self.last_flush_ms = self._around.clock.wall_ms()
        if end_offset > self.recovery_point:
            with self._failures("flush it"):
                await self._segments.flush(self.recovery_point, end_offset)
            self.recovery_point = end_offset

    # -- read --------------------------------------------------------------------------------

    async def read(
        self, offset: int, max_bytes: int, up_to: UpTo = UpTo.LOG_END, *, at_least_one: bool = True
    ) -> Records:
        """Batches from the one that holds `offset` on, of `max_bytes` at most. `at_least_one`: the first may be larger.
        Raises OffsetOutOfRange and LogFailed."""
        return await self._undisturbed(lambda: self._read(offset, max_bytes, up_to, at_least_one=at_least_one))

    async def _read(self, offset: int, max_bytes: int, up_to: UpTo, *, at_least_one: bool) -> Records:
        limit = self._limit(up_to)
        state = Records(b"", self.start_offset, self.high_watermark, self.end_offset)
        if not self.start_offset <= offset <= self.end_offset:
            raise OffsetOutOfRange(
                f"{self._name}: offset {offset} is asked for, and there are [{self.start_offset}, {self.end_offset})"
            )
        if offset < limit:
            for segment in self._segments.at(offset):
                data = await segment.read(offset, max_bytes, limit, at_least_one=at_least_one)
                if data is not None:
                    return state._replace(data=data)
        return state

    async def _undisturbed(self, reading: Callable[[], Awaitable[T]]) -> T:
        """The result of `reading`, which is repeated if positions have changed meanwhile."""
        while True:
            layout = self._segments.layout
            try:
                with self._failures("read it", StorageError):
                    result = await reading()
            except (LogError, InvalidBatch) as error:
                if layout == self._segments.layout:
                    raise error if isinstance(error, LogError) else UnreadableLog(f"{self._name}: {error}") from None
            else:
                if layout == self._segments.layout:
                    return result

    def _limit(self, up_to: UpTo) -> int:
        return self.end_offset if up_to is UpTo.LOG_END else self.high_watermark

    # -- look-ups ----------------------------------------------------------------------------

    def earliest(self) -> FoundOffset:
        return FoundOffset(NO_TIMESTAMP, self.start_offset, self._epochs.at(self.start_offset))

    def latest(self, up_to: UpTo = UpTo.LOG_END) -> FoundOffset:
        return FoundOffset(NO_TIMESTAMP, self._limit(up_to), self._epochs.latest)

    async def first_since(self, timestamp_ms: int, up_to: UpTo = UpTo.LOG_END) -> FoundOffset | None:
        """The first record whose timestamp is not smaller. Raises LogFailed."""
        return await self._undisturbed(lambda: self._first_since(timestamp_ms, self._limit(up_to)))

    async def largest_timestamp(self, up_to: UpTo = UpTo.LOG_END) -> FoundOffset | None:
        """The first record that has the largest timestamp of all. Raises LogFailed."""

        async def reading() -> FoundOffset | None:
            largest = NO_TIMESTAMP
            for segment in self._segments.all:
                await segment.load()
                largest = max(largest, segment.largest.timestamp)
            return None if largest == NO_TIMESTAMP else await self._first_since(largest, self._limit(up_to))

        return await self._undisturbed(reading)

    async def _first_since(self, timestamp_ms: int, limit: int) -> FoundOffset | None:
        for segment in self._segments.at(self.start_offset):
            await segment.load()
            if segment.largest.timestamp < timestamp_ms:
                continue
            reader = await segment.reader_by_time(timestamp_ms, self.start_offset)
            while (found := await reader.next()) is not None and found.header.base_offset < limit:
                if found.header.max_timestamp_ms >= timestamp_ms and found.header.last_offset >= self.start_offset:
                    for record in records(found.data, found.at):
                        if record.timestamp_ms >= timestamp_ms and self.start_offset <= record.offset < limit:
                            return FoundOffset(record.timestamp_ms, record.offset, found.header.leader_epoch)
        return None

    def end_of_epoch(self, leader_epoch: int, *, before_first: bool = True) -> EpochEnd:
        """The answer to OffsetForLeaderEpoch. `before_first`: see `LeaderEpochs`."""
        return self._epochs.end_of(leader_epoch, self.end_offset, before_first=before_first)

    # -- truncate and delete -----------------------------------------------------------------

    async def truncate_to(self, offset: int) -> None:
        """Drop all from `offset` on. Raises LogFailed."""
        async with self._writing, self._flushing, self._around.tasks.shield():
            self._check_failure()
            with self._failures("truncate it"):
                if offset < self.end_offset:
                    await self._truncate(offset)
                await self._trim_epochs()

    async def restart_at(self, offset: int) -> None:
        """Drop everything, and go on at `offset`, as a follower does whose leader begins later. Raises LogFailed."""
        async with self._writing, self._flushing, self._around.tasks.shield():
            self._check_failure()
            with self._failures("truncate it"):
                await self._lower(offset)
                await self._begin_at(offset)

    async def delete_records(self, before: int) -> None:
        """Let the log begin at `before`, not above the high watermark. Raises OffsetOutOfRange and LogFailed."""
        if before > self.high_watermark:
            raise OffsetOutOfRange(
                f"{self._name}: records before {before} cannot go, the high watermark is {self.high_watermark}"
            )
        async with self._writing, self._flushing, self._around.tasks.shield():
            self._check_failure()
            with self._failures("delete its first records", DiskFull):
                if before > self.start_offset:
                    self.start_offset = before
                    await self._around.checkpoint()
                    await self._forget_old_epochs()

    async def delete_old_segments(self) -> int:
        """Delete what the start offset, `retention.bytes` and `retention.ms` do not ask to keep. Segments that are
        not committed to the end stay. Returns how many went. Raises LogFailed."""
        async with self._writing, self._flushing, self._around.tasks.shield():
            self._check_failure()
            with self._failures("delete its old segments", DiskFull):
                now_ms = self._around.clock.wall_ms()
                count = await self._deletable(now_ms)
                if count == len(self._segments.all):
                    if self._segments.active.size == 0:
                        count -= 1
                    else:
                        await self._roll(self.end_offset, now_ms)
                if count:
                    gone = self.base_offsets[:count]
                    self.start_offset = max(self.start_offset, self.base_offsets[count])
                    await self._segments.drop_first(count, now_ms + self.config.file_delete_delay_ms)
                    await self._snapshots.delete(gone)
                    await self._forget_old_epochs()
                return count

    async def delete_dropped_files(self) -> None:
        """Delete the files of segments that were dropped `file.delete.delay.ms` ago. Raises LogFailed."""
        with self._failures("delete files of it", StorageError):
            await self._segments.delete_dropped(self._around.clock.wall_ms())

    def expire_producers(self) -> None:
        """Forget producers that have written nothing for `producer.id.expiration.ms`."""
        self._producers.expire(self._around.clock.wall_ms())

    async def _truncate(self, offset: int) -> None:
        now_ms = self._around.clock.wall_ms()
        await self._lower(offset)
        if offset < self.base_offsets[0]:
            await self._begin_at(offset)
            return
        kept = sum(each <= offset for each in self.base_offsets)
        await self._segments.drop_from(kept, now_ms + self.config.file_delete_delay_ms)
        self._segments.layout += 1
        await self._segments.active.truncate_to(offset, now_ms)
        self._segments.layout += 1
        await self._end_at(self._segments.active.next_offset)

    async def _lower(self, offset: int) -> None:
        """Before data goes: recovery after a crash must begin where they end, and not trust what comes later."""
        self.recovery_point = min(self.recovery_point, offset)
        self.start_offset = min(self.start_offset, offset)
        await self._around.checkpoint()

    async def _begin_at(self, offset: int) -> None:
        now_ms = self._around.clock.wall_ms()
        await self._segments.drop_from(0, now_ms + self.config.file_delete_delay_ms)
        await self._segments.open(offset, self.config, now_ms, empty=True)
        await self._snapshots.keep(())
        if self._epochs.clear():
            await keep_epochs(self._around.storage, self._segments.folder, self._epochs)
        self.start_offset = offset
        await self._end_at(offset)
        self.high_watermark = offset  # also if it was below

    async def _end_at(self, offset: int) -> None:
        self.end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)
        self.high_watermark = min(self.high_watermark, offset)
        await self._snapshots.load(
            self._producers,
            start_offset=self.start_offset,
            end_offset=offset,
            now_ms=self._around.clock.wall_ms(),
            warn=self._around.warn,
        )
        await replay(self._producers, self._segments, offset)

    async def _trim_epochs(self) -> None:
        """After a truncation: epochs that have no record left go, from either end."""
        changed = self._epochs.truncate_from_end(self.end_offset)
        if self._epochs.truncate_from_start(self.start_offset) or changed:
            await keep_epochs(self._around.storage, self._segments.folder, self._epochs)

    async def _forget_old_epochs(self) -> None:
        """After the log's start has moved. The leader's epoch stays, also if it has written nothing yet."""
        if self._epochs.truncate_from_start(self.start_offset):
            await keep_epochs(self._around.storage, self._segments.folder, self._epochs)

    async def _deletable(self, now_ms: int) -> int:
        """How many segments, from the oldest on, need not be kept."""
        config, all_of_them = self.config, self._segments.all
        ends = (*self.base_offsets[1:], self.end_offset)
        excess = self.size - config.retention_bytes if config.retention_bytes >= 0 else 0
        for count, (segment, end) in enumerate(zip(all_of_them, ends, strict=True)):
            if end > self.high_watermark:
                return count
            excess -= segment.size
            too_old = config.retention_ms >= 0 and now_ms - await self._newest_ms(segment) > config.retention_ms
            passed = end <= self.start_offset and segment is not self._segments.active
            too_much = excess >= 0 and config.retention_bytes >= 0
            if not (passed or (config.deletes and (too_old or too_much))):
                return count
        return len(all_of_them)

    async def _newest_ms(self, segment: Segment) -> int:
        """The time of its newest record. Without any, nobody knows, and it counts as written when it was opened."""
        await segment.load()
        return segment.created_ms if segment.largest.timestamp == NO_TIMESTAMP else segment.largest.timestamp

    # -- end ---------------------------------------------------------------------------------

    async def close(self) -> bool:
        """Close all files. Returns whether everything is there that the next start needs, so that it need not recover
        the log."""
        async with self._writing, self._flushing, self._around.tasks.shield():
            try:
                if self.failure is None:
                    with self._failures("close it"):
                        await self._keep_all()
            except LogFailed as error:
                self._around.warn(str(error))
            await self._segments.close()
            closed_well, self.failure = self.failure is None, "it is closed"
            return closed_well

    async def discard(self) -> None:
        """Close all files of a log that nobody needs any more."""
        async with self._writing, self._flushing, self._around.tasks.shield():
            self.failure = "it is deleted"
            await self._segments.close()

    async def _keep_all(self) -> None:
        active = self._segments.active
        active.seal()
        await self._segments.flush(min(self.recovery_point, active.base_offset), self.end_offset + 1)
        self.recovery_point = self.end_offset
        await self._snapshots.write(self._producers)
        await self._snapshots.keep((*self.base_offsets, self.end_offset))

    # -- failures ----------------------------------------------------------------------------

    def _check_failure(self) -> None:
        if self.failure is not None:
            raise LogFailed(f"{self._name} cannot be written to: {self.failure}")

    @contextmanager
    def _failures(self, what: str, *spared: type[StorageError]) -> Iterator[None]:
        """Turn errors of the disk into LogFailed. After all but those that are spared, nothing more is written."""
        try:
            yield
        except StorageError as error:
            if not isinstance(error, spared):
                self.failure = f"{error}; start the broker again when the disk works"
                self._around.warn(f"{self._name}: {self.failure}")
            if isinstance(error, DiskFull) or not isinstance(error, spared):
                self._around.failed(f"{self._name}: cannot {what}: {error}")
            raise LogFailed(f"{self._name}: cannot {what}: {error}") from error


async def keep_epochs(storage: Storage, folder: str, epochs: LeaderEpochs) -> None:
    """Write a log's file of leader epochs."""
    await replace_file(storage, f"{folder}/{LEADER_EPOCHS}", write_epochs(epochs.entries))
