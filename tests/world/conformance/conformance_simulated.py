"""The simulated ZooKeeper under a conformance case, with or without the recorder around it."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from conformance_harness import TICK_MS, EnsembleHarness, Harness

from rebalance_lab.history.recorder import MemorySink, Recorder
from rebalance_lab.history.transactions import Transaction
from rebalance_lab.kernel import Process
from rebalance_lab.kernel.simulation import Simulation
from rebalance_lab.world.ports import ZooKeeper
from rebalance_lab.world.simulated.settings import ServerSettings
from rebalance_lab.world.simulated.zookeeper import SimulatedZooKeeper
from rebalance_lab.world.zk.recording import RecordingFactory


class SimulatedHarness(Harness):
    """Each session lives in a process of its own, so that holds concern it alone."""

    kind = "simulated"

    def __init__(self, seed: int, *, recorded: bool = False, servers: tuple[str, ...] = ("z1",)) -> None:
        super().__init__()
        self.servers = servers
        self.root = "/conformance"
        self.simulation = Simulation(seed)
        self.kernel = self.simulation.kernel
        self.server = SimulatedZooKeeper(self.kernel, seed, settings=ServerSettings(tick_ms=TICK_MS), servers=servers)
        self.simulation.invariants.append(self.server.check)
        self.sink = MemorySink()
        self._recorded = recorded
        self._processes: dict[ZooKeeper, Process] = {}

    def _open(self, timeout_ms: int, servers: tuple[str, ...], chroot: str) -> ZooKeeper:
        name = f"client{len(self._processes)}"
        process = self.kernel.process(name)
        factory = self.server.factory(process, name)
        if self._recorded:
            factory = RecordingFactory(factory, Recorder(name, self.kernel, self.sink), self.kernel)
        hosts = ",".join(f"{server}:2181" for server in servers or self.servers)
        session = factory.open(hosts + chroot, timeout_ms)
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

    def cut(self, session: ZooKeeper, *, to_server: bool = False, to_client: bool = False) -> None:
        self.server.cut(self._processes[session], to_server=to_server, to_client=to_client)

    def heal(self, session: ZooKeeper) -> None:
        self.server.heal(self._processes[session])

    async def stop(self, session: ZooKeeper, duration_ms: int) -> None:
        self._processes[session].pause()
        await self.sleep_ms(duration_ms)
        self._processes[session].resume()

    def transactions(self) -> list[Transaction]:
        return list(self.server.transactions)

    def step(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self.simulation.run(coroutine, "story")

    def end(self) -> None:
        self.simulation.close()


class SimulatedEnsembleHarness(SimulatedHarness, EnsembleHarness):
    """Three simulated servers."""

    def __init__(self, seed: int, *, recorded: bool = False) -> None:
        super().__init__(seed, recorded=recorded, servers=EnsembleHarness.servers)

    def at(self, session: ZooKeeper) -> str:
        server = self.server.serving(session.session_id)
        assert server is not None, f"{session!r} is not connected"
        return server

    async def leader(self) -> str:
        async def found() -> bool:
            return self.server.leader is not None

        await self.until(found, "a leader")
        assert self.server.leader is not None
        return self.server.leader

    def kill(self, server: str) -> None:
        self.server.kill_server(server)

    async def start(self, server: str) -> None:
        self.server.start_server(server)
        probe = await self.connected(servers=(server,))
        await probe.close()

    def pause(self, server: str) -> None:
        self.server.pause_server(server)

    def resume(self, server: str) -> None:
        self.server.resume_server(server)

    def lag(self, server: str, delay_ms: int) -> None:
        self.server.lag(server, delay_ms * 1000)
