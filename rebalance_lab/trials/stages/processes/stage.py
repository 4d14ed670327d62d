"""A live stage: servers, nodes' processes, and what the runner reads of both."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.recorder import FileSink
from rebalance_lab.history.rest import StateTracker
from rebalance_lab.history.transactions import RegistryTracker, Transaction
from rebalance_lab.kernel import Flag, RandomStream
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.roles.spec import NodeSpec
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.scenario import scenario
from rebalance_lab.trials.stage import (
    RUNNER_SESSION_TICKS,
    NodeOptions,
    ProcessHandle,
    Servers,
    prompt_servers,
    tracked,
)
from rebalance_lab.trials.stages.processes.links import LiveLinks
from rebalance_lab.trials.stages.processes.nodes import (
    CarryOut,
    ChildProcess,
    EventFile,
    EventSource,
    LabProcess,
    LiveNode,
    NodeProcess,
    ProxiedNode,
    at_once,
)
from rebalance_lab.trials.subject import Outsiders
from rebalance_lab.wire.describe import describe
from rebalance_lab.world.live.ensemble_log import EnsembleLog
from rebalance_lab.world.live.environment import live_environment
from rebalance_lab.world.live.proxy import TcpProxy
from rebalance_lab.world.live.reserved_port import ReservedPort
from rebalance_lab.world.live.synced_lengths import lose_power
from rebalance_lab.world.live.zookeeper_node import server_version
from rebalance_lab.world.ports import RecorderPort, ZooKeeper
from rebalance_lab.world.power_loss import PowerLoss
from rebalance_lab.world.process.clocks import clock_of, identity, measure_wall_offset
from rebalance_lab.world.process.managed import CommandedProcess

#: The time between two reads of what members and servers wrote.
FOLLOW_PERIOD_US = 20_000


class Reach(Protocol):
    """How a trial's servers are reached."""

    @property
    def data_dirs(self) -> list[Path]: ...
    def connect_to(self, name: str) -> str:
        """The connect string of one server."""
        ...


class Log(Protocol):
    """The transactions that the servers have committed, each once."""

    def poll(self) -> list[Transaction]: ...


class LiveStage:
    """Processes and servers for one trial (`trials.stage.Stage`). `carry_out`: how what blocks is carried out.
    `log` and `chroot`: for servers that the trial shares with others."""

    #: The processes are looked at once in so many reads of the files.
    check_every: ClassVar[int] = 1

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        live: LiveKernel,
        reach: Reach,
        servers: Servers,
        *,
        carry_out: CarryOut = at_once,
        log: Log | None = None,
        chroot: str = "",
    ) -> None:
        self.plan = plan
        self.folder = folder
        self.kernel = live.kernel
        subject = scenario(plan.scenario).subject
        self.tracker: StateTracker[Any] = subject.tracker()
        self.changed = Flag("trial changed")
        self.boot_ids: set[str] = {clock_of(identity())}
        self.wall_offset_us = measure_wall_offset().offset_us
        self.processes: dict[str, NodeProcess] = {}
        self.servers = servers
        self._live = live
        self._carry_out = carry_out
        self._reach = reach
        self._chroot = chroot
        self._log = log or EnsembleLog(reach.data_dirs)
        self._proxies: list[TcpProxy] = []
        self._registry = RegistryTracker(wall_offset_us=self.wall_offset_us, describe=describe, plant=plan.plant)
        self._own_files = [FileSink(folder / "zookeeper.jsonl"), FileSink(folder / "runner.jsonl")]
        registry_sink, runner_sink = (tracked(each, self.tracker, self.changed) for each in self._own_files)
        self._registry_sink = registry_sink
        self._files: list[EventSource] = []
        self._ports: dict[str, ReservedPort] = {}
        self._folders: dict[str, Path] = {}
        self.links = LiveLinks(live.kernel)
        self._outsiders = None if subject.real is None else subject.real.take_part(plan, folder, live.kernel)
        runner = live_environment("runner", live, runner_sink, plan.seed, operations=plan.operations)
        self.recorder: RecorderPort = runner.recorder
        connect = self._connect(prompt_servers(self.servers.names))
        self.zookeeper: ZooKeeper = runner.zookeeper.open(connect, RUNNER_SESSION_TICKS * plan.number("tick_ms"))

    def versions(self) -> dict[str, str]:
        """The versions of what the world consists of beside the lab. A server is asked before the trial begins."""
        host, _, port = self._reach.connect_to(self.servers.names[0]).rpartition(":")
        return {"zookeeper": server_version(host, int(port))}

    async def follow(self) -> None:
        """Read what members and servers write, as long as the trial runs."""
        while True:
            ended = await self._carry_out(self._ended, "what has ended")
            self.poll()  # all that those have written
            self._let_refused_end()
            for process in ended:
                process.check()
            if self._outsiders is not None:
                self._outsiders.check()
            for _ in range(self.check_every):
                self.poll()
                await self.kernel.sleep(FOLLOW_PERIOD_US)

    def _ended(self) -> list[NodeProcess]:
        return [each for each in list(self.processes.values()) if each.process.exit_code is not None]

    def _let_refused_end(self) -> None:
        """A process in which all nodes were refused ends by itself, and may take its time."""
        for process in self.processes.values():
            process.may_end = process.may_end or self.tracker.refused(process.nodes)

    def poll(self) -> None:
        """Read what has been written by now."""
        moved = False
        for file in self._files:
            for event in file.poll():
                moved |= self._seen(event)
        self._poll_registry()
        if moved:
            self.changed.raise_()

    def _poll_registry(self) -> None:
        for transaction in self._log.poll():
            for event in self._registry.feed(transaction):
                if self._outsiders is not None:
                    self._outsiders.feed(event)
                self._registry_sink.write(event)

    def _seen(self, event: Event) -> bool:
        if event.kind is Kind.PROCESS_STARTED:
            self.boot_ids.add(clock_of(event.detail or {}))
        self.links.seen(event)
        return self.tracker.feed(event)

    def start(self, actor: str, options: NodeOptions) -> ProcessHandle:
        """Start a node, in a process of its own or in a shared one. Raises TrialError, EmbeddedServerError."""
        servers = options.servers or self.servers.names
        proxies = self._proxies_to(servers) if options.proxied else []
        proxied = ",".join(each.connect_string for each in proxies)
        connect = proxied + self._chroot if proxied else self._connect(servers)
        events = self.folder / f"{actor}.jsonl"
        spec = options.spec(self.plan, actor, connect=connect, events=self._seen_by_nodes(events))
        outsider = None if self._outsiders is None else self._start_outsider(self._outsiders, spec)
        runs_in = outsider or self._start_ours(spec, options.shares_process, events)
        self.links.add(actor, runs_in)
        self._folders[actor] = files = self.folder / spec.files.name
        return self._node(actor, runs_in, proxies, self._power_of(actor, files))

    async def started_one_of_several(self) -> None:
        await self.kernel.sleep(FOLLOW_PERIOD_US)

    def _node(
        self, actor: str, runs_in: NodeProcess, proxies: list[TcpProxy], lose_power: Callable[..., PowerLoss]
    ) -> LiveNode:
        return ProxiedNode(actor, runs_in, self.kernel, lose_power, self._carry_out, proxies=proxies)

    def _seen_by_nodes(self, file: Path) -> str:
        """The path at which nodes find a file of the trial's folder."""
        return str(file.resolve())

    def _make(self, name: str, spec_file: Path) -> CommandedProcess:
        """Start a process of ours (`roles.main`)."""
        return ChildProcess(name, spec_file)

    def _power_of(self, actor: str, files: Path) -> Callable[[], PowerLoss]:
        """What a loss of power does to the files of a node."""
        return partial(lose_power, files, RandomStream(self.plan.seed, actor, "power loss"))

    def _start_outsider(self, outsiders: Outsiders, spec: NodeSpec) -> NodeProcess | None:
        started = outsiders.start(spec, wall_offset_us=self.wall_offset_us, poll_registry=self._poll_registry)
        if started is None:
            return None
        process, events = started
        self.processes[spec.actor] = process
        self._files.append(events)
        return process

    def _start_ours(self, spec: NodeSpec, shares_process: str | None, events: Path) -> NodeProcess:
        name = shares_process or spec.actor
        process = self.processes.get(name)
        if process is None:
            process = self.processes[name] = LabProcess(name, [spec], self.folder, self._make)
        else:
            process.start(spec)
        self._files.append(EventFile(events))
        return process

    def port(self, actor: str) -> int:
        if actor not in self._ports:
            self._ports[actor] = ReservedPort()
        return self._ports[actor].number

    def folders(self, actor: str) -> tuple[str, ...]:
        return tuple(sorted(each.name for each in self._folders[actor].iterdir() if each.is_dir()))

    async def start_brokers(self, count: int) -> bool:
        """Start real brokers if real members are to come, which fetch from them."""
        if self._outsiders is None:
            return False
        return await self._outsiders.start_brokers(count, self._connect(prompt_servers(self.servers.names)))

    def _connect(self, names: tuple[str, ...]) -> str:
        return ",".join(self._reach.connect_to(name) for name in names) + self._chroot

    def _proxies_to(self, servers: tuple[str, ...]) -> list[TcpProxy]:
        addresses = (self._reach.connect_to(name).rpartition(":") for name in servers)
        proxies = [TcpProxy(self._live.loop, host, int(port)) for host, _, port in addresses]
        self._proxies += proxies
        return proxies

    def wait_for_processes(self) -> None:
        """Wait until the processes of members that left have ended. Raises TrialError for one that ended badly."""
        self._let_refused_end()
        for process in self.processes.values():
            process.wait()

    def end_processes(self) -> None:
        """Kill what still runs (only after a failure) and reap everything, also if one of them cannot be ended."""
        with ExitStack() as ends:
            for proxy in self._proxies:
                ends.callback(proxy.close)
            if self._outsiders is not None:
                ends.callback(self._outsiders.end)
            for port in self._ports.values():
                ends.callback(port.close)
            for process in self.processes.values():
                ends.callback(process.end)

    def close(self) -> None:
        for file in self._own_files:
            file.close()
        for source in self._files:
            source.close()
