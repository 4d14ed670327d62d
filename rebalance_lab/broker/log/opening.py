"""Opening the log of a partition, and recovering it after a crash (`LogLoader`, Kafka 3.9.1).

What differs from Kafka is in docs/reference/broker-log.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.log.batches import FoundBatch
from rebalance_lab.broker.log.checkpoints import MalformedFile, read_epochs
from rebalance_lab.broker.log.config import LogConfig
from rebalance_lab.broker.log.epochs import UNDEFINED_EPOCH, EpochStart, LeaderEpochs
from rebalance_lab.broker.log.errors import UnreadableLog
from rebalance_lab.broker.log.files import TEMPORARY, read_file
from rebalance_lab.broker.log.log import PartitionLog, Surroundings, keep_epochs
from rebalance_lab.broker.log.names import (
    DELETED,
    LEADER_EPOCHS,
    LOG,
    OFFSET_INDEX,
    PRODUCER_SNAPSHOT,
    TIME_INDEX,
    folder_of,
    segment_file,
    segment_file_parts,
)
from rebalance_lab.broker.log.producers import Producers
from rebalance_lab.broker.log.segments import Segments
from rebalance_lab.broker.log.snapshots import Snapshots, replay

#: Files of a compaction that Kafka was in the middle of.
_COMPACTION = (".cleaned", ".swap")


@dataclass(frozen=True, slots=True)
class LastLife:
    """What a broker's folder says of a log. `clean`: the broker was shut down in order, so that nothing need be
    recovered. `recovery_point`: below it, everything was durable. `start_offset`: the log began there."""

    clean: bool = False
    recovery_point: int = 0
    start_offset: int = 0


async def open_log(
    surroundings: Surroundings, partition: TopicPartition, config: LogConfig, last_life: LastLife
) -> PartitionLog:
    """Open the log in the partition's folder, which is there. Raises UnreadableLog and StorageErrors."""
    opening = _Opening(surroundings, partition, config, last_life)
    try:
        return await opening.run()
    except BaseException:
        await opening.segments.close()
        raise


class _Opening:
    def __init__(
        self, surroundings: Surroundings, partition: TopicPartition, config: LogConfig, last_life: LastLife
    ) -> None:
        self.folder = folder_of(partition)
        self.segments = Segments(surroundings.tasks, surroundings.storage, self.folder)
        self._around = surroundings
        self._partition = partition
        self._config = config
        self._start_offset = last_life.start_offset
        #: From where on nothing is known to be durable; None: everything is.
        self._doubtful: int | None = None if last_life.clean else last_life.recovery_point
        self._producers = Producers(self.folder, config.producer_id_expiration_ms)
        self._now_ms = surroundings.clock.wall_ms()

    async def run(self) -> PartitionLog:
        offsets = await self._sort_files()
        self._snapshots = Snapshots(self._around.storage, self.folder, offsets[PRODUCER_SNAPSHOT])
        self._epochs = await self._read_epochs()
        in_file = self._epochs.entries
        for base_offset in offsets[LOG]:
            await self.segments.open(base_offset, self._config, self._now_ms)
        if self._doubtful is not None:
            await self._recover(self._doubtful)
        end_offset = await self._end_offset()
        await self._finish_epochs(end_offset, in_file)
        if self._doubtful is None:
            await self._load_producers(end_offset)
        elif end_offset not in offsets[PRODUCER_SNAPSHOT]:
            await self._snapshots.write(self._producers)
        await self._snapshots.keep((*(each.base_offset for each in self.segments.all), end_offset))
        return PartitionLog(
            self._around,
            self._partition,
            self._config,
            segments=self.segments,
            epochs=self._epochs,
            producers=self._producers,
            snapshots=self._snapshots,
            start_offset=self._start_offset,
            recovery_point=end_offset if self._doubtful is None else min(self._doubtful, end_offset),
        )

    async def _sort_files(self) -> dict[str, list[int]]:
        """The offsets of segments and snapshots. Files of deletions, and of writing, that a crash interrupted go."""
        storage = self._around.storage
        found: dict[str, list[int]] = {LOG: [], OFFSET_INDEX: [], TIME_INDEX: [], PRODUCER_SNAPSHOT: []}
        for name in (await storage.list(self.folder)).files:
            if name.endswith(_COMPACTION):
                raise UnreadableLog(
                    f"{self.folder}/{name}: Kafka was stopped while it compacted this log; let Kafka finish that first"
                )
            parts = segment_file_parts(name)
            if name.endswith((DELETED, TEMPORARY)):
                await storage.delete(f"{self.folder}/{name}")
            elif parts is not None:
                found[parts[1]].append(parts[0])
        for suffix in (OFFSET_INDEX, TIME_INDEX):
            for offset in found[suffix]:
                if offset not in found[LOG]:
                    await storage.delete(f"{self.folder}/{segment_file(offset, suffix)}")
        return found

    async def _read_epochs(self) -> LeaderEpochs:
        """If the file cannot be read, the whole log is, because batches carry their epochs."""
        path = f"{self.folder}/{LEADER_EPOCHS}"
        try:
            return LeaderEpochs(read_epochs(await read_file(self._around.storage, path) or b""))
        except MalformedFile as error:
            self._around.warn(f"{path}: {error}; the leader epochs are read from the log instead")
            self._doubtful = 0
            return LeaderEpochs()

    async def _recover(self, recovery_point: int) -> None:
        """Cut the log after its last batch that is whole, valid and without a gap before it."""
        doubtful = self.segments.at(recovery_point)
        if not doubtful:
            self._producers.clear(self._start_offset)
            return
        await self._load_producers(doubtful[0].base_offset)
        first, number = len(self.segments.all) - len(doubtful), 0
        for number, segment in enumerate(doubtful, 1):
            cut = await segment.recover(self._visit)
            follower = doubtful[number] if number < len(doubtful) else None
            if cut:
                self._around.warn(f"{segment.file.path}: {cut} bytes after offset {segment.next_offset} were cut off")
            if follower is not None and (cut or follower.base_offset != segment.next_offset):
                break
        for lost in doubtful[number:]:
            self._around.warn(f"{lost.file.path}: deleted, because offsets before it were lost")
        await self.segments.drop_from(first + number, self._now_ms)

    def _visit(self, found: FoundBatch) -> None:
        header = found.header
        if header.leader_epoch not in (self._epochs.at(header.base_offset), UNDEFINED_EPOCH):
            self._epochs.assign(header.leader_epoch, header.base_offset)
        if header.last_offset >= self._producers.end_offset:
            self._producers.add(header)

    async def _load_producers(self, end_offset: int) -> None:
        await self._snapshots.load(
            self._producers,
            start_offset=self._start_offset,
            end_offset=end_offset,
            now_ms=self._now_ms,
            warn=self._around.warn,
        )
        await replay(self._producers, self.segments, end_offset)

    async def _end_offset(self) -> int:
        """Where the log ends; a log without a segment gets one. The start offset is one that the log has, then."""
        if self.segments.all:
            await self.segments.active.load()
            end_offset = self.segments.active.next_offset
            if end_offset >= self._start_offset:
                self._start_offset = max(self._start_offset, self.segments.all[0].base_offset)
                return end_offset
            why = f"the log ends at {end_offset} and began at {self._start_offset}"
            self._around.warn(f"{self.folder}: all segments were deleted, because {why}")
            await self.segments.drop_from(0, self._now_ms)
            self._producers.clear(self._start_offset)
        self._epochs.clear()
        await self.segments.open(self._start_offset, self._config, self._now_ms, empty=True)
        return self._start_offset

    async def _finish_epochs(self, end_offset: int, in_file: tuple[EpochStart, ...]) -> None:
        self._epochs.truncate_from_end(end_offset)
        self._epochs.truncate_from_start(self._start_offset)
        if self._doubtful is not None or self._epochs.entries != in_file:
            await keep_epochs(self._around.storage, self.folder, self._epochs)
