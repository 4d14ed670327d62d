"""A partition's log on a simulated disk, and the ends that its process can come to."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.log.config import LogConfig
from rebalance_lab.broker.log.log import PartitionLog, Surroundings
from rebalance_lab.broker.log.opening import LastLife, open_log
from rebalance_lab.kernel.simulation import Simulation
from rebalance_lab.wire.kafka.records import Record, batches, build_batch, place, records
from rebalance_lab.world.simulated.disk import SimulatedDisk
from rebalance_lab.world.simulated.storage import SimulatedStorage

T = TypeVar("T")

PARTITION = TopicPartition("events", 0)
FOLDER = "events-0"
NOW_MS = 1_700_000_000_000


class WorldClock:
    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self.skipped_ms = 0

    def now_us(self) -> int:
        return self._kernel.now_us()

    def wall_ms(self) -> int:
        return NOW_MS + self.skipped_ms + self._kernel.now_us() // 1000


class LogWorld:
    """`lows`: what the log has made durable of its recovery point and start offset."""

    def __init__(self, seed: int = 0, config: LogConfig | None = None, disk: SimulatedDisk | None = None) -> None:
        self.simulation = Simulation(seed)
        self.kernel = self.simulation.kernel
        self.clock = WorldClock(self.kernel)
        self.disk = disk or SimulatedDisk(seed, "b1")
        self.config = config or LogConfig()
        self.warnings: list[str] = []
        self.failures: list[str] = []
        self.rolled: list[PartitionLog] = []
        self.recovery_point = 0
        self.start_offset = 0
        self.clean = False
        self.log: PartitionLog
        self._live()

    def _live(self) -> None:
        self.process = self.kernel.process("b1")
        self.storage = SimulatedStorage(self.kernel, self.process, self.disk)

    # -- what happens to the process ----------------------------------------------------------

    def kill(self) -> None:
        self.process.kill()
        self._live()

    def lose_power(self) -> None:
        self.process.kill()
        self.disk.lose_power()
        self._live()

    async def open(self) -> PartitionLog:
        await self.storage.make_folder(FOLDER)
        await self.storage.sync_folder("")
        surroundings = Surroundings(
            self.kernel,
            self.storage,
            self.clock,
            self.checkpoint,
            self.rolled.append,
            self.warnings.append,
            self.failures.append,
        )
        life = LastLife(self.clean, self.recovery_point, self.start_offset)
        self.clean = False
        self.log = await open_log(surroundings, PARTITION, self.config, life)
        return self.log

    async def close(self) -> None:
        self.clean = await self.log.close()
        await self.checkpoint()

    async def checkpoint(self) -> None:
        """What a manager writes to its checkpoints, which are durable at once here."""
        if hasattr(self, "log"):
            self.recovery_point, self.start_offset = self.log.recovery_point, self.log.start_offset

    # -- looking ------------------------------------------------------------------------------

    def run(self, story: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a story in the broker's process."""
        result: list[T] = []

        async def told() -> None:
            task = self.kernel.spawn(story(), "story", process=self.process)
            result.append(await task)

        self.simulation.run(told())
        return result[0]

    def files(self, folder: str = FOLDER) -> dict[str, bytes]:
        start = f"{folder}/"
        return {
            path.removeprefix(start): bytes(file.data)
            for path, file in self.disk.files().items()
            if path.startswith(start)
        }


def batch(*values: bytes, timestamp_ms: int = NOW_MS, **more: Any) -> bytes:
    return build_batch([Record(None, value, timestamp_ms) for value in values], **more)


def values(data: bytes) -> list[bytes | None]:
    return [record.value for at, _ in batches(data) for record in records(data, at)]


def offsets(data: bytes) -> list[int]:
    return [header.base_offset for _, header in batches(data)]


def sent(*contents: bytes, base_offset: int, epoch: int = 0) -> bytes:
    """A batch as a leader sends it."""
    placed = bytearray(batch(*contents))
    place(placed, 0, base_offset=base_offset, leader_epoch=epoch)
    return bytes(placed)
