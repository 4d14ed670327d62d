"""Simulated trials: one OS process, virtual time, and a seed that chooses every schedule."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from rebalance_lab.history.events import Event
from rebalance_lab.history.files import History, canonical, merge
from rebalance_lab.history.recorder import MemorySink, Sink
from rebalance_lab.history.rest import StateTracker
from rebalance_lab.history.transactions import RegistryTracker, Transaction
from rebalance_lab.kernel import Flag, Kernel, RandomStream
from rebalance_lab.kernel.simulation import Simulation
from rebalance_lab.roles.spec import NodeSpec, role_of
from rebalance_lab.trials.plan import Plan, run_command
from rebalance_lab.trials.record import trial_record
from rebalance_lab.trials.scenario import play, scenario
from rebalance_lab.trials.stage import (
    RUNNER_SESSION_TICKS,
    GaveUp,
    Links,
    NodeOptions,
    ObservedSink,
    Servers,
    prompt_servers,
    tracked,
)
from rebalance_lab.trials.stages.simulated.handles import Life, SimulatedLinks, SimulatedNode, SimulatedServers
from rebalance_lab.wire.describe import describe
from rebalance_lab.world.ports import RecorderPort, ZooKeeper
from rebalance_lab.world.simulated.settings import (
    SIMULATED_EPOCH_MS,
    NetworkSettings,
    ServerSettings,
)
from rebalance_lab.world.simulated.world import SimulatedWorld

#: The kernel that a simulated process reports.
SIMULATED_BOOT_ID = "simulated"

#: Called with each event as soon as it is recorded, and the kernel. It can end the trial by raising a
#: BaseException that is not an Exception, as members survive Exceptions (see `trials.halting`).
OnEvent = Callable[[Kernel, Event], None]


class SimulatedStage:
    """One simulated world for one trial (`trials.stage.Stage`)."""

    def __init__(self, plan: Plan, simulation: Simulation, on_event: OnEvent | None = None) -> None:
        self.plan = plan
        self.kernel: Kernel = simulation.kernel
        self.tracker: StateTracker[Any] = scenario(plan.scenario).subject.tracker()
        self.changed = Flag("trial changed")
        self._memory = MemorySink()
        self.sink: Sink = tracked(self._memory, self.tracker, self.changed)
        if on_event is not None:
            self.sink = ObservedSink(self.sink, partial(on_event, self.kernel))
        names = tuple(f"z{number}" for number in range(1, plan.number("servers") + 1))
        self._world = SimulatedWorld(
            simulation,
            plan.seed,
            self.sink,
            settings=ServerSettings(tick_ms=plan.number("tick_ms")),
            network=NetworkSettings(latency_us=(plan.number("latency_min_us"), plan.number("latency_max_us"))),
            plant=plan.plant,
            operations=plan.operations,
            servers=names,
        )
        #: When each process with nodes is or was ready, by its name and its life's seed.
        self._ready: dict[tuple[str, int | str], int] = {}
        self.servers: Servers = SimulatedServers(self._world.zookeeper, self.kernel)
        self.links: Links = SimulatedLinks(self._world.network)
        self._registry = RegistryTracker(wall_offset_us=SIMULATED_EPOCH_MS * 1000, describe=describe, plant=plan.plant)
        self._world.zookeeper.on_transaction(self._transaction)
        simulation.invariants.append(self._world.zookeeper.check)
        runner = self._world.environment("runner", self.kernel.process("runner"))
        self.recorder: RecorderPort = runner.recorder
        timeout_ms = RUNNER_SESSION_TICKS * plan.number("tick_ms")
        self.zookeeper: ZooKeeper = runner.zookeeper.open(connect_string(prompt_servers(names)), timeout_ms)

    @property
    def events(self) -> list[Event]:
        return self._memory.events

    def _transaction(self, transaction: Transaction) -> None:
        for event in self._registry.feed(transaction):
            self.sink.write(event)

    def start(self, actor: str, options: NodeOptions) -> SimulatedNode:
        """Start a node in a process of its own, which takes time to be ready."""
        connect = connect_string(options.servers or self.servers.names)
        spec = options.spec(self.plan, actor, connect=connect, events="")
        process_name = options.shares_process or actor
        launch = partial(self._launch, spec, process_name)
        disk = self._world.disk(actor)
        return SimulatedNode(actor, launch, disk, self._world.zookeeper, self.tracker, self.kernel)

    def _launch(self, spec: NodeSpec, process_name: str) -> Life:
        actor, role = spec.actor, role_of(spec)
        process = self.kernel.process(actor)
        environment = self._world.environment(actor, process)
        closing = self.kernel.flag(f"close {actor}")
        ready_us = self._ready_us(process_name, environment.seed)

        async def life() -> None:
            await self.kernel.sleep(ready_us - self.kernel.now_us())
            await role.run(environment, spec, closing)

        task = self.kernel.start_root(life(), f"{role.name} {actor}", process=process)
        return Life(process, closing, task)

    def _ready_us(self, name: str, seed: int | str) -> int:
        """When the process of this name is ready to run nodes: an interpreter takes time to start. A node that
        joins a running process does not wait. `seed`: of the life that begins."""
        if (name, seed) not in self._ready:
            low, high = self.plan.number("start_min_us"), self.plan.number("start_max_us")
            drawn_us = low + RandomStream(seed, name, "start").below(high - low + 1)
            self._ready[name, seed] = self.kernel.now_us() + drawn_us
        return max(self._ready[name, seed], self.kernel.now_us())

    async def started_one_of_several(self) -> None:
        """Nothing to do: a start takes no time of the runner's."""

    def port(self, actor: str) -> int:
        return 0

    def folders(self, actor: str) -> tuple[str, ...]:
        return self._world.disk(actor).listing("").folders

    def poll(self) -> None:
        pass

    async def start_brokers(self, count: int) -> bool:
        return False


def connect_string(names: tuple[str, ...]) -> str:
    """The connect string of the simulated servers."""
    return ",".join(f"{name}:2181" for name in names)


def simulate(plan: Plan, on_event: OnEvent | None = None) -> tuple[History, bytes]:
    """Run a simulated trial; return its history and its canonical bytes, even if the runner gave up
    (`history.views.gave_up`). Raises TrialError, Deadlock, and what a failing member raises, each with a note, so
    that the last line of a traceback is the command that runs the trial again."""
    simulation = Simulation(plan.seed)
    try:
        stage = SimulatedStage(plan, simulation, on_event)
        with suppress(GaveUp):
            simulation.run(play(stage), f"scenario {plan.scenario}")
        events = merge(stage.events)
    except Exception as error:
        # No command runs stand-ins for real members, so the plan is shown instead.
        error.add_note(f"again: {plan if plan.has_real_nodes else run_command(plan)}")
        raise
    finally:
        simulation.close()
    body = canonical(events)
    trial = trial_record(
        plan,
        plan.trial_id,
        hashlib.sha256(body).hexdigest(),
        boot_ids=(SIMULATED_BOOT_ID,),
        wall_offset_us=SIMULATED_EPOCH_MS * 1000,
    )
    return History(trial, events), body
