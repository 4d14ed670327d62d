"""A simulated ZooKeeper with processes around it, for the tests of this room."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from rebalance_lab.history.transactions import Transaction, TransactionKind
from rebalance_lab.kernel import Future, Process
from rebalance_lab.kernel.simulation import Simulation
from rebalance_lab.world.ports import SessionEventKind, SessionState, ZooKeeper
from rebalance_lab.world.simulated.server import Server
from rebalance_lab.world.simulated.settings import SIMULATED_CONNECT, NetworkSettings, ServerSettings
from rebalance_lab.world.simulated.zookeeper import SimulatedZooKeeper

T = TypeVar("T")

SECOND = 1_000_000


class Bench:
    def __init__(
        self,
        seed: int = 1,
        *,
        settings: ServerSettings | None = None,
        network: NetworkSettings | None = None,
        plant: str | None = None,
        servers: tuple[str, ...] = ("z1",),
    ) -> None:
        self.simulation = Simulation(seed)
        self.kernel = self.simulation.kernel
        self.zookeeper = SimulatedZooKeeper(
            self.kernel, seed, settings=settings, network=network, plant=plant, servers=servers
        )
        self.simulation.invariants.append(self.zookeeper.check)
        self.processes: dict[str, Process] = {}

    @property
    def now_us(self) -> int:
        return self.kernel.now_us()

    @property
    def transactions(self) -> list[Transaction]:
        return self.zookeeper.transactions

    def kinds(self) -> list[TransactionKind]:
        return [transaction.kind for transaction in self.transactions]

    @property
    def server(self) -> Server:
        """The first server, from the inside."""
        return self.zookeeper._ensemble.servers[self.zookeeper.servers[0]]

    def process(self, name: str) -> Process:
        if name not in self.processes:
            self.processes[name] = self.kernel.process(name)
        return self.processes[name]

    def open(self, name: str, timeout_ms: int = 2000, connect: str = "") -> ZooKeeper:
        """A session of process `name`, to all servers unless `connect` says which."""
        everybody = ",".join(f"{server}:2181" for server in self.zookeeper.servers)
        default = everybody if len(self.zookeeper.servers) > 1 else SIMULATED_CONNECT
        factory = self.zookeeper.factory(self.process(name), f"host-{name}")
        return factory.open(connect or default, timeout_ms)

    async def connected(self, name: str, timeout_ms: int = 2000, connect: str = "") -> ZooKeeper:
        session = self.open(name, timeout_ms, connect)
        event = await session.events.get()
        assert event.kind is SessionEventKind.CONNECTED and session.state is SessionState.CONNECTED
        return session

    async def sleep(self, seconds: float) -> None:
        await self.kernel.sleep(int(seconds * SECOND))

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        try:
            return self.simulation.run(main)
        finally:
            self.simulation.close()


async def outcome(future: Future[Any]) -> str:
    """`ok`, or the name of the error an operation failed with."""
    try:
        await future
    except Exception as error:
        return type(error).__name__
    return "ok"
