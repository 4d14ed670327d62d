"""What a conformance case of the port to a disk may do to its world."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from rebalance_lab.kernel import Kernel, RandomStream
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.kernel.simulation import Simulation
from rebalance_lab.world.live.storage import LiveStorage
from rebalance_lab.world.live.synced_lengths import lose_power
from rebalance_lab.world.power_loss import PowerLoss
from rebalance_lab.world.simulated.disk import DiskSettings, SimulatedDisk
from rebalance_lab.world.simulated.storage import SimulatedStorage
from rebalance_lab.world.storage import Storage

STORY_LIMIT_US = 100_000_000

#: More bytes than this do not fit on a disk that was filled.
FULL_BYTES = 4

StorageStory = Callable[["StorageHarness"], Awaitable[None]]


class StorageHarness(ABC):
    """One actor's disk. `storage`: of its present life."""

    kernel: Kernel
    storage: Storage

    @abstractmethod
    def kill(self) -> None:
        """Kill the actor's process, and start another."""

    @abstractmethod
    def lose_power(self) -> PowerLoss:
        """The same on a host that loses its power in between."""

    @abstractmethod
    def fill(self, path: str) -> None:
        """From now `path`, a file that is not there yet, takes no more than `FULL_BYTES`, or nothing at all."""

    @abstractmethod
    def step(self, coroutine: Coroutine[Any, Any, None]) -> None: ...

    @abstractmethod
    def end(self) -> None: ...

    def run(self, story: StorageStory) -> None:
        async def told() -> None:
            async with self.kernel.timeout(STORY_LIMIT_US, "the story"):
                await story(self)

        try:
            self.step(told())
        finally:
            self.end()


class SimulatedStorageHarness(StorageHarness):
    def __init__(self, seed: int) -> None:
        self.simulation = Simulation(seed)
        self.kernel = self.simulation.kernel
        self.disk = SimulatedDisk(seed, "b1")
        self._live()

    def _live(self) -> None:
        self.process = self.kernel.process("b1")
        self.storage = SimulatedStorage(self.kernel, self.process, self.disk)

    def kill(self) -> None:
        self.process.kill()
        self._live()

    def lose_power(self) -> PowerLoss:
        self.process.kill()
        lost = self.disk.lose_power()
        self._live()
        return lost

    def fill(self, path: str) -> None:
        self.disk.settings = DiskSettings(capacity_bytes=FULL_BYTES)

    def step(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self.simulation.run(coroutine, "story")

    def end(self) -> None:
        self.simulation.close()


class LiveStorageHarness(StorageHarness):
    def __init__(self, seed: int, folder: Path) -> None:
        self.folder = folder
        self._live_kernel = LiveKernel()
        self.kernel = self._live_kernel.kernel
        self._stream = RandomStream(seed, "b1", "power loss")
        self._live()

    def _live(self) -> None:
        self._opened = LiveStorage(self.kernel, self._live_kernel.loop, self.folder)
        self.storage = self._opened

    def kill(self) -> None:
        self._opened.close()
        self._live()

    def lose_power(self) -> PowerLoss:
        self._opened.close()
        lost = lose_power(self.folder, self._stream)
        self._live()
        return lost

    def fill(self, path: str) -> None:
        self.folder.mkdir(exist_ok=True)
        (self.folder / path).symlink_to("/dev/full")

    def step(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._live_kernel.run(coroutine, "story")

    def end(self) -> None:
        self._opened.close()
        self._live_kernel.close()
