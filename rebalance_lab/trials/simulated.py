"""Simulated trials: one OS process, virtual time, every schedule chosen by the seed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial

from rebalance_lab.history.events import Event
from rebalance_lab.history.files import History, Trial, canonical, merge
from rebalance_lab.history.recorder import MemorySink, Sink
from rebalance_lab.history.transactions import RegistryTracker, Transaction
from rebalance_lab.hosts.members import build_member
from rebalance_lab.kernel import Flag, Kernel, Process
from rebalance_lab.kernel.simulation import Simulation
from rebalance_lab.trials.lab import Lab
from rebalance_lab.trials.members import member_spec
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.rest import RestTracker, TrackedSink
from rebalance_lab.trials.scenario import play
from rebalance_lab.trials.versions import versions
from rebalance_lab.wire.describe import describe
from rebalance_lab.world.ports import RecorderPort, ZooKeeper
from rebalance_lab.world.simulated.settings import (
    SIMULATED_CONNECT,
    SIMULATED_EPOCH_MS,
    NetworkSettings,
    ServerSettings,
)
from rebalance_lab.world.simulated.world import SimulatedWorld

#: What a simulated process answers when asked which kernel it ran on.
SIMULATED_BOOT_ID = "simulated"

#: The runner's own session; longer than any member's.
RUNNER_SESSION_MS = 10_000


#: Told each event as soon as it is recorded, on which kernel. It ends the trial by raising what
#: is no Exception: members survive those (see `trials.halting`).
OnEvent = Callable[[Kernel, Event], None]


class ToldSink:
    """A sink that tells of each event, once it is written."""

    def __init__(self, sink: Sink, tell: Callable[[Event], None]) -> None:
        self._sink = sink
        self._tell = tell

    def write(self, event: Event) -> None:
        self._sink.write(event)
        self._tell(event)


class SimulatedProcess:
    """The faults' handle on a simulated process (`trials.lab.ProcessHandle`)."""

    def __init__(self, process: Process, closing: Flag) -> None:
        self._process = process
        self._closing = closing

    async def pause(self) -> str:
        self._process.pause()
        return f"kernel process {self._process.name} is {self._process.state.value}"

    async def resume(self) -> str:
        self._process.resume()
        return f"kernel process {self._process.name} is {self._process.state.value}"

    async def kill(self) -> str:
        self._process.kill()
        return f"kernel process {self._process.name} is {self._process.state.value}"

    def ask_to_leave(self) -> None:
        self._closing.raise_()


class SimulatedStage:
    """One simulated world for one trial (`trials.lab.Stage`)."""

    def __init__(self, plan: Plan, simulation: Simulation, on_event: OnEvent | None = None) -> None:
        self.plan = plan
        self.kernel: Kernel = simulation.kernel
        self.tracker = RestTracker()
        self.changed = Flag("trial changed")
        self._memory = MemorySink()
        self.sink: Sink = TrackedSink(self._memory, self.tracker, self.changed)
        if on_event is not None:
            self.sink = ToldSink(self.sink, partial(on_event, self.kernel))
        plants_server = plan.plant if plan.plant == "two-owners" else None
        self._world = SimulatedWorld(
            simulation,
            plan.seed,
            self.sink,
            settings=ServerSettings(tick_ms=plan.number("tick_ms")),
            network=NetworkSettings(latency_us=(plan.number("latency_min_us"), plan.number("latency_max_us"))),
            plant=plants_server,
        )
        self._registry = RegistryTracker(wall_offset_us=SIMULATED_EPOCH_MS * 1000, describe=describe, plant=plan.plant)
        self._world.zookeeper.on_transaction(self._transaction)
        simulation.invariants.append(self._world.zookeeper.check)
        runner = self._world.environment("runner", self.kernel.process("runner"))
        self.recorder: RecorderPort = runner.recorder
        self.zookeeper: ZooKeeper = runner.zookeeper.open(SIMULATED_CONNECT, RUNNER_SESSION_MS)

    @property
    def events(self) -> list[Event]:
        return self._memory.events

    def _transaction(self, transaction: Transaction) -> None:
        for event in self._registry.feed(transaction):
            self.sink.write(event)

    def start_member(self, actor: str) -> SimulatedProcess:
        process = self.kernel.process(actor)
        environment = self._world.environment(actor, process)
        closing = self.kernel.flag(f"close {actor}")
        spec = member_spec(self.plan, actor, connect=SIMULATED_CONNECT, events="")
        member = build_member(environment, spec)
        self.kernel.host(member.run(spec.streams, closing), f"member {actor}", process=process)
        return SimulatedProcess(process, closing)


def simulate(plan: Plan, on_event: OnEvent | None = None) -> tuple[History, bytes]:
    """Run a simulated trial; return its history and its canonical bytes. Raises TrialError, Deadlock, and what a
    failing member raises; the message ends with the command that replays it."""
    simulation = Simulation(plan.seed)
    try:
        stage = SimulatedStage(plan, simulation, on_event)
        lab = Lab(plan, stage)
        simulation.run(play(lab), f"scenario {plan.scenario}")
        events = merge(stage.events)
    finally:
        simulation.close()
    body = canonical(events)
    trial = Trial(
        id=plan.trial_id,
        scenario=plan.scenario,
        world=plan.world,
        generation="zk",
        rules=plan.rules,
        seed=plan.seed,
        control=plan.control,
        parameters=plan.parameters,
        plant=plan.plant,
        boot_ids=(SIMULATED_BOOT_ID,),
        wall_offset_us=SIMULATED_EPOCH_MS * 1000,
        versions=versions(),
        history_sha256=hashlib.sha256(body).hexdigest(),
    )
    return History(trial, events), body
