"""The simulated world: what each actor of a simulated trial is given."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rebalance_lab.history.recorder import Recorder, Sink
from rebalance_lab.kernel import Kernel, Process, RandomStream
from rebalance_lab.kernel.simulation import Simulation
from rebalance_lab.world.net.listening import record_listening
from rebalance_lab.world.ports import Environment, life_seed
from rebalance_lab.world.simulated.disk import SimulatedDisk
from rebalance_lab.world.simulated.network import SimulatedNetwork, carries_bytes
from rebalance_lab.world.simulated.old_lists import OldLists
from rebalance_lab.world.simulated.settings import NetworkSettings, ServerBug, ServerSettings, wall_ms
from rebalance_lab.world.simulated.storage import SimulatedStorage
from rebalance_lab.world.simulated.zookeeper import SimulatedZooKeeper
from rebalance_lab.world.zk.recording import ALL, RecordingFactory


def host_of(actor: str) -> str:
    """The host that an actor runs on."""
    return f"host-{actor}"


class SimulatedClock:
    """The port `world.ports.Clock` in virtual time; all actors share it."""

    def __init__(self, kernel: Kernel) -> None:
        self.now_us = kernel.now_us

    def wall_ms(self) -> int:
        return wall_ms(self.now_us())


class SimulatedWorld:
    """One simulated ZooKeeper, and environments on it. All events go to `sink`.

    `servers`: the names of its servers, one or several.
    `plant`: the trial's planted bug; those of others than the server have no effect here.
    `operations`: `all` or `counts`, what is recorded of each session's (`world.zk.recording`).
    Put `zookeeper.check` among the simulation's invariants.
    """

    def __init__(
        self,
        simulation: Simulation,
        seed: int | str,
        sink: Sink,
        *,
        settings: ServerSettings | None = None,
        network: NetworkSettings | None = None,
        plant: str | None = None,
        operations: str = ALL,
        servers: tuple[str, ...] = ("z1",),
    ) -> None:
        self.kernel = simulation.kernel
        self.clock = SimulatedClock(simulation.kernel)
        self.zookeeper = SimulatedZooKeeper(
            simulation.kernel,
            seed,
            settings=settings,
            network=network,
            plant=plant if plant in tuple(ServerBug) else None,
            servers=servers,
        )
        self.network = SimulatedNetwork(
            simulation.kernel,
            network or NetworkSettings(),
            RandomStream(seed, "network", "links"),
            through_bytes=carries_bytes(seed),
        )
        self._seed = seed
        self._sink = sink
        self._operations = operations
        self._recorders: dict[str, Recorder] = {}
        self._disks: dict[str, SimulatedDisk] = {}
        self._old_lists = plant == ServerBug.OLD_LISTS

    def disk(self, actor: str) -> SimulatedDisk:
        """The disk of `actor`, which outlives its processes."""
        if actor not in self._disks:
            self._disks[actor] = SimulatedDisk(self._seed, actor)
        return self._disks[actor]

    def environment(
        self, actor: str, process: Process, *, member_of: Callable[[], str | None] | None = None
    ) -> Environment:
        """What `actor` runs on, in `process`, at host `host-<actor>`. An actor that is started again goes on counting
        its events.

        `member_of`: the consumer id that operations are recorded under, once there is one.
        """
        host = host_of(actor)
        former = self._recorders.get(actor)
        recorder = Recorder(actor, self.kernel, self._sink, next_n=0 if former is None else former.next_n)
        self._recorders[actor] = recorder
        factory = self.zookeeper.factory(process, host)
        return Environment(
            actor=actor,
            host=host,
            tasks=self.kernel,
            clock=self.clock,
            zookeeper=RecordingFactory(
                OldLists(factory) if self._old_lists else factory,
                recorder,
                self.kernel,
                member_of,
                operations=self._operations,
            ),
            recorder=recorder,
            network=self.network.port(process, host, partial(record_listening, recorder)),
            storage=SimulatedStorage(self.kernel, process, self.disk(actor)),
            seed=life_seed(self._seed, recorder.next_n),
        )
