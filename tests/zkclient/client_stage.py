"""A stage for stories about one ZkClient on a simulated ZooKeeper."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from rebalance_lab.history.events import Kind
from rebalance_lab.history.recorder import MemorySink
from rebalance_lab.kernel.simulation import Simulation
from rebalance_lab.world.simulated.world import SimulatedWorld
from rebalance_lab.zkclient import ZkClient
from rebalance_lab.zkclient.client import ZkSettings

SESSION_TIMEOUT_MS = 2000


class Listener:
    """Writes down what it is told; raises when told to."""

    def __init__(self, name: str, told: list[tuple[object, ...]]) -> None:
        self.name = name
        self.told = told
        self.error: Exception | None = None

    async def handle_child_change(self, path: str, children: tuple[str, ...] | None) -> None:
        self._tell("children", path, children)

    async def handle_data_change(self, path: str, data: bytes) -> None:
        self._tell("data", path, data)

    async def handle_data_deleted(self, path: str) -> None:
        self._tell("deleted", path)

    async def handle_new_session(self) -> None:
        self._tell("new session")

    def _tell(self, *what: object) -> None:
        self.told.append((self.name, *what))
        if self.error is not None:
            raise self.error


class Stage:
    """`play(story)` runs `async def story(stage)` with a connected `stage.client`."""

    def __init__(self, seed: int = 1) -> None:
        self.simulation = Simulation(seed)
        self.tasks = self.simulation.kernel
        self.sink = MemorySink()
        world = SimulatedWorld(self.simulation, seed, self.sink)
        self.server = world.zookeeper
        self.process = self.tasks.process("m1")
        self.environment = world.environment("m1", self.process)
        self.other = world.environment("outside", self.tasks.process("outside")).zookeeper.open(
            "simulated:2181", 10_000
        )
        self.told: list[tuple[object, ...]] = []
        self.client: ZkClient

    def play(self, story: Callable[[Stage], Awaitable[None]]) -> Stage:
        async def main() -> None:
            async with self.tasks.scope("story") as scope:
                settings = ZkSettings("simulated:2181", SESSION_TIMEOUT_MS, member="g_m1", group="g")
                self.client = ZkClient(self.environment, settings, scope)
                await self.client.connect(SESSION_TIMEOUT_MS)
                await story(self)
                await self.client.close()

        async def run() -> None:
            await self.tasks.spawn(main(), "story", process=self.process)

        try:
            self.simulation.run(run())
        finally:
            self.simulation.close()
        return self

    def listener(self, name: str = "a") -> Listener:
        return Listener(name, self.told)

    async def settle(self) -> None:
        """Let everything that is under way arrive: no message takes as long."""
        await self.tasks.sleep(50_000)

    def operations(self) -> list[str]:
        """`op path` of all the client asked, in order."""
        found = [event for event in self.sink.events if event.actor == "m1" and event.kind is Kind.INVOKED]
        return [f"{event.of('op')} {event.of('path')}" for event in found]

    def details(self, kind: Kind, name: str) -> list[object]:
        return [event.of(name) for event in self.sink.events if event.actor == "m1" and event.kind is kind]
