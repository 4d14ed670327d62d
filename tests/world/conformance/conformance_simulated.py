"""The simulated ZooKeeper under a conformance case, with or without the recorder around it."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from conformance_harness import TICK_MS, Harness

from rebalance_lab.history.recorder import MemorySink, Recorder
from rebalance_lab.history.transactions import Transaction
from rebalance_lab.kernel import Process
from rebalance_lab.kernel.simulation import Simulation
from rebalance_lab.world.ports import ZooKeeper
from rebalance_lab.world.recording import RecordedFactory
from rebalance_lab.world.simulated.settings import SIMULATED_CONNECT, ServerSettings
from rebalance_lab.world.simulated.zookeeper import SimulatedZooKeeper


class SimulatedHarness(Harness):
    """Each session lives in a process of its own, so that holds concern it alone."""

    kind = "simulated"

    def __init__(self, seed: int, *, recorded: bool = False) -> None:
        super().__init__()
        self.root = "/conformance"
        self.simulation = Simulation(seed)
        self.kernel = self.simulation.kernel
        self.server = SimulatedZooKeeper(self.kernel, seed, settings=ServerSettings(tick_ms=TICK_MS))
        self.simulation.invariants.append(self.server.check)
        self.sink = MemorySink()
        self._recorded = recorded
        self._processes: dict[ZooKeeper, Process] = {}

    def _open(self, timeout_ms: int) -> ZooKeeper:
        name = f"client{len(self._processes)}"
        process = self.kernel.process(name)
        factory = self.server.factory(process, name)
        if self._recorded:
            factory = RecordedFactory(factory, Recorder(name, self.kernel, self.sink), self.kernel)
        session = factory.open(SIMULATED_CONNECT, timeout_ms)
        self._processes[session] = process
        return session

    def break_now(self, session: ZooKeeper) -> None:
        assert self.server.break_connection(session.session_id), f"{session!r} has no connection to break"

    def hold(self, session: ZooKeeper) -> None:
        self.server.hold_connections(self._processes[session])

    def release(self, session: ZooKeeper) -> None:
        self.server.release_connections(self._processes[session])

    def lose_next_reply(self, session: ZooKeeper) -> None:
        self.server.lose_next_reply(session.session_id)

    def expire(self, session: ZooKeeper) -> None:
        self.server.expire(session.session_id)

    def transactions(self) -> list[Transaction]:
        return list(self.server.transactions)

    def step(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self.simulation.run(coroutine, "story")

    def end(self) -> None:
        self.simulation.close()
