"""Lives of a broker's log that end in a crash, and what must be left of each.

One partition is written to, flushed, truncated and deleted from, as the seed wants. At a random moment its process is
killed, or its host loses power. The next life opens the folder and compares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from log_witness import durable_end
from log_world import FOLDER, NOW_MS, PARTITION, WorldClock

from rebalance_lab.broker.log.checkpoints import MetaProperties
from rebalance_lab.broker.log.config import LogConfig
from rebalance_lab.broker.log.log import PartitionLog
from rebalance_lab.broker.log.manager import LogManager, Periods
from rebalance_lab.kernel import Kernel, Process, RandomStream
from rebalance_lab.kernel.simulation import Simulation
from rebalance_lab.wire.kafka.records import Record, batches, build_batch, check_batch, place, read_header
from rebalance_lab.world.simulated.disk import SimulatedDisk
from rebalance_lab.world.simulated.storage import SimulatedStorage
from rebalance_lab.world.storage import Storage

OWNER = MetaProperties(cluster_id="c", broker_id=1)
PRODUCER = 11
OFTEN = Periods(
    log_flush_scheduler_interval_ms=5,
    log_retention_check_interval_ms=20,
    file_delete_check_interval_ms=10,
    log_flush_offset_checkpoint_interval_ms=8,
    replica_high_watermark_checkpoint_interval_ms=5,
)

StorageOf = Callable[[Kernel, Process, SimulatedDisk], Storage]


@dataclass(slots=True)
class Model:
    """What the log should hold. `stored`: what was answered for, batches by their first offsets. `asked`: the batch
    that is being appended. `truncating`: to where, while it is. `start`: the log may not begin later, nor after
    `retained` if retention deletes. `written`: it may not end before; `durable`: nor after a loss of power, because the
    disk was told to sync what is below, whatever the log says."""

    stored: dict[int, bytes] = field(default_factory=dict)
    asked: bytes | None = None
    truncating: int | None = None
    start: int = 0
    retained: int = 0
    end: int = 0
    written: int = 0
    durable: int = 0
    epoch: int = 0
    sequence: int = 0
    producer_epoch: int = 0


class Crashes:
    """`lives` of one broker, each from the disk that the last one has left."""

    def __init__(self, seed: int, storage_of: StorageOf = SimulatedStorage) -> None:
        self.stream = RandomStream(seed, "b1", "story")
        self.simulation = Simulation(seed)
        self.kernel = self.simulation.kernel
        self.clock = WorldClock(self.kernel)
        self.disk = SimulatedDisk(seed, "b1")
        self.model = Model()
        #: What was cut off, and how many bytes: the proof that crashes have torn something.
        self.warnings: list[str] = []
        self.config = LogConfig(
            segment_bytes=1000 + self.stream.below(3000),
            index_interval_bytes=self.stream.below(600),
            flush_messages=(None, None, 1, 7)[self.stream.below(4)],
            flush_ms=(None, 4)[self.stream.below(2)],
            retention_bytes=(-1, 4000)[self.stream.below(2)],
            file_delete_delay_ms=15,
        )
        self.lives = 0
        self._storage_of = storage_of

    def live(self) -> None:
        """One life, and its end."""
        self.lives += 1
        self.simulation.run(self._life())

    async def _life(self) -> None:
        process = self.kernel.process("b1")
        self._log: PartitionLog | None = None
        manager = LogManager(
            self.kernel,
            self._storage_of(self.kernel, process, self.disk),
            self.clock,
            RandomStream(0, "b1", "names"),
            warn=self.warnings.append,
            periods=OFTEN,
        )
        opened = self.kernel.spawn(self._open(manager), "open", process=process)
        if self.stream.below(6) == 0:
            await self.kernel.sleep(self.stream.below(4000))  # a crash while it recovers
        else:
            await opened
            care = self.kernel.spawn(manager.run(), "care", process=process)
            work = self.kernel.spawn(self._work(manager), "work", process=process)
            await self.kernel.sleep(self.stream.below(40_000))
            for each in (care, work):
                if each.done:
                    each.result()  # what it has found wrong
        process.kill()
        model = self.model
        if self._log is not None:
            model.durable = self._durable_end(self._log)
            assert self._log.recovery_point <= model.durable, f"{self._log} takes more for durable than was synced"
            model.written = model.end
            if model.truncating is not None:
                model.written, model.durable = model.truncating, min(model.durable, model.truncating)
        if self.stream.below(2):
            self.disk.lose_power()
            model.written = model.durable

    async def _open(self, manager: LogManager) -> None:
        await manager.start(OWNER, lambda _: self.config)
        assert not manager.unusable, str(manager.unusable)
        log = await manager.create(PARTITION, self.config)
        await self._compare(log)
        self._log = log
        log.high_watermark = log.end_offset

    # -- the story ---------------------------------------------------------------------------

    async def _work(self, manager: LogManager) -> None:
        log, below = self._log, self.stream.below
        assert log is not None
        while True:
            match below(16):
                case 0:
                    await log.flush()
                    self._is_synced(log, self.model.end)
                case 1:
                    await self._truncate(log, log.start_offset + below(log.end_offset - log.start_offset + 1))
                case 2:
                    self.model.start = max(self.model.start, before := below(log.end_offset + 1))
                    await log.delete_records(before)
                case 3:
                    await self.kernel.sleep(below(3000))
                case 4 if below(4) == 0:
                    await manager.close()
                    return
                case _:
                    await self._append(log)
            log.high_watermark = log.end_offset

    async def _append(self, log: PartitionLog) -> None:
        model, count = self.model, 1 + self.stream.below(4)
        model.epoch += self.stream.below(8) == 0
        most = min(500, self.config.segment_bytes // count - 100)  # a batch fits in a segment
        data = build_batch(
            [Record(None, self.stream.hex(2 + self.stream.below(most)).encode(), NOW_MS + n) for n in range(count)],
            producer_id=PRODUCER,
            producer_epoch=model.producer_epoch,
            base_sequence=model.sequence,
        )
        placed = bytearray(data)
        place(placed, 0, base_offset=log.end_offset, leader_epoch=model.epoch)
        model.asked = bytes(placed)
        self._retain(log.end_offset)
        appended = await log.append(data, model.epoch)
        assert not appended.duplicate
        model.stored[appended.first_offset], model.asked = model.asked, None
        model.end = appended.last_offset + 1
        model.sequence += count
        every = self.config.flush_messages
        if every is not None and self.stream.below(8) == 0:
            self._is_synced(log, model.end - every + 1)

    def _retain(self, end_offset: int) -> None:
        """Retention leaves segments of `retention.bytes` at least, so it may let the log begin at the last batch from
        which on there are as many. The batch that is asked for counts: the log may delete before it answers."""
        model, limit = self.model, self.config.retention_bytes
        if limit < 0:
            return
        assert model.asked is not None
        size = 0
        for base, data in sorted({**model.stored, end_offset: model.asked}.items(), reverse=True):
            size += len(data)
            if size >= limit:
                model.retained = max(model.retained, base)
                return

    def _durable_end(self, log: PartitionLog) -> int:
        return durable_end(self.disk, FOLDER, self.model.stored, log.base_offsets[0], log.start_offset)

    def _is_synced(self, log: PartitionLog, least: int) -> None:
        end = self._durable_end(log)
        assert end >= least, f"{log} was to be synced up to {least}, and the disk was told to sync what is below {end}"

    async def _truncate(self, log: PartitionLog, offset: int) -> None:
        model = self.model
        whole = max((base for base in model.stored if base <= offset), default=offset)
        if whole != offset and read_header(model.stored[whole]).last_offset < offset:
            whole = offset
        model.truncating = whole
        model.retained = min(model.retained, whole)
        await log.truncate_to(whole)
        model.stored = {base: data for base, data in model.stored.items() if base < whole}
        model.truncating, model.end = None, whole
        self._take_sequence()

    def _take_sequence(self) -> None:
        """The producer goes on after its last batch. If that is not there any more, the log may know of it or not, by
        its snapshots, and the producer begins a new epoch."""
        model = self.model
        last = read_header(model.stored[max(model.stored)]) if model.stored else None
        if last is not None and last.producer_epoch == model.producer_epoch:
            model.sequence = last.last_sequence + 1
        else:
            model.sequence, model.producer_epoch = 0, model.producer_epoch + 1
        model.epoch += 1

    # -- what must be left -------------------------------------------------------------------

    async def _compare(self, log: PartitionLog) -> None:
        """The log holds whole batches without a gap, and no others than were written; it lacks none that it may not."""
        found = await self._read(log)
        written = dict(self.model.stored)
        if self.model.asked is not None:
            written[read_header(self.model.asked).base_offset] = self.model.asked
        for base, data in found.items():
            assert data == written.get(base), f"the batch at {base} is not the one that was written"
        bases = [base for base in sorted(written) if found and min(found) <= base <= max(found)]
        assert bases == sorted(found), "there is a gap"
        latest = max(self.model.start, self.model.retained)
        assert log.start_offset <= latest, f"{log} begins after {latest}"
        assert log.end_offset >= self.model.written, f"{log} ends before {self.model.written}"
        self._compare_epochs(log, found)
        await self._compare_producer(log, found)
        retained = min(self.model.retained, log.end_offset)
        self.model = Model(
            found,
            start=log.start_offset,
            retained=retained,
            end=log.end_offset,
            epoch=self.model.epoch + 1,
            producer_epoch=self.model.producer_epoch,
        )
        self._take_sequence()

    async def _read(self, log: PartitionLog) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        offset = log.start_offset
        while offset < log.end_offset:
            data = (await log.read(offset, 1 + self.stream.below(3000))).data
            assert data, f"nothing to read at {offset} of {log}"
            for at, header in batches(data):
                check_batch(data, at)
                assert header.base_offset <= offset or found, f"the first batch from {offset} is {header}"
                found[header.base_offset] = data[at : at + header.size]
                offset = header.last_offset + 1
        assert offset == log.end_offset, f"batches end at {offset} in {log}"
        return found

    def _compare_epochs(self, log: PartitionLog, found: dict[int, bytes]) -> None:
        headers = [read_header(data) for _, data in sorted(found.items())]
        for header, following in pairwise(headers):
            if header.leader_epoch != following.leader_epoch:
                assert log.end_of_epoch(header.leader_epoch) == (header.leader_epoch, following.base_offset)
        if headers:
            assert log.leader_epoch == headers[-1].leader_epoch
            assert log.end_of_epoch(log.leader_epoch) == (log.leader_epoch, log.end_offset)

    async def _compare_producer(self, log: PartitionLog, found: dict[int, bytes]) -> None:
        """Its last batch is known again."""
        if found:
            last = found[max(found)]
            header = read_header(last)
            again = bytearray(last)
            place(again, 0, base_offset=0, leader_epoch=-1)
            appended = await log.append(bytes(again), header.leader_epoch)
            assert appended.duplicate, "a repeated batch was written again"
            assert (appended.first_offset, appended.last_offset) == (header.base_offset, header.last_offset)


def run_lives(seed: int, lives: int, storage_of: StorageOf = SimulatedStorage) -> Crashes:
    """Raises AssertionError, which names seed and life, if a life has left something else than it should."""
    crashes = Crashes(seed, storage_of)
    try:
        for _ in range(lives):
            crashes.live()
    except BaseException as error:
        error.add_note(f"in life {crashes.lives} of seed {seed}")
        raise
    finally:
        crashes.simulation.close()
    return crashes
