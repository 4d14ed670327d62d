"""A live stage: servers, nodes' processes, and what the runner reads of both."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Protocol

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
from rebalance_lab.trials.stages.processes.nodes import EventFile, EventSource, Host, HostProcess, LiveNode
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
    """Processes and servers for one trial (`trials.stage.Stage`). `log` and `chroot`: for servers that the trial
    shares with others."""

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        live: LiveKernel,
        reach: Reach,
        servers: Servers,
        *,
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
        self.processes: dict[str, Host] = {}
        self.servers = servers
        self._live = live
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
            ended = [process for process in self.processes.values() if process.popen.poll() is not None]
            self.poll()  # all that those have written
            self._let_refused_end()
            for process in ended:
                process.check()
            if self._outsiders is not None:
                self._outsiders.check()
            await self.kernel.sleep(FOLLOW_PERIOD_US)

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
        if event.kind is Kind.HOST_STARTED:
            self.boot_ids.add(clock_of(event.detail or {}))
        self.links.seen(event)
        return self.tracker.feed(event)

    def start(self, actor: str, options: NodeOptions) -> ProcessHandle:
        """Start a node, in a process of its own or in a shared one. Raises TrialError."""
        events = self.folder / f"{actor}.jsonl"
        servers = options.servers or self.servers.names
        proxies = [self._proxy(name) for name in servers] if options.proxied else []
        proxied = ",".join(proxy.connect_string for proxy in proxies)
        connect = proxied + self._chroot if proxied else self._connect(servers)
        spec = options.spec(self.plan, actor, connect=connect, events=str(events.resolve()))
        outsider = None if self._outsiders is None else self._start_outsider(self._outsiders, spec)
        host = outsider or self._start_ours(spec, options.shares_process)
        self.links.add(actor, host)
        return LiveNode(actor, host, self.kernel, proxies, self._power_of(actor, spec.files))

    def _power_of(self, actor: str, files: Path) -> Callable[[], PowerLoss]:
        """What a loss of power does to the files of a node."""
        return partial(lose_power, files, RandomStream(self.plan.seed, actor, "power loss"))

    def _start_outsider(self, outsiders: Outsiders, spec: NodeSpec) -> Host | None:
        started = outsiders.start(spec, wall_offset_us=self.wall_offset_us, poll_registry=self._poll_registry)
        if started is None:
            return None
        host, events = started
        self.processes[spec.actor] = host
        self._files.append(events)
        return host

    def _start_ours(self, spec: NodeSpec, shares_process: str | None) -> Host:
        name = shares_process or spec.actor
        process = self.processes.get(name)
        if process is None:
            process = self.processes[name] = HostProcess(name, [spec], self.folder)
        else:
            process.start(spec)
        self._files.append(EventFile(Path(spec.events)))
        return process

    def port(self, actor: str) -> int:
        if actor not in self._ports:
            self._ports[actor] = ReservedPort()
        return self._ports[actor].number

    async def start_brokers(self, count: int) -> bool:
        """Start real brokers if real members are to come, which fetch from them."""
        if self._outsiders is None:
            return False
        return await self._outsiders.start_brokers(count, self._connect(prompt_servers(self.servers.names)))

    def _connect(self, names: tuple[str, ...]) -> str:
        return ",".join(self._reach.connect_to(name) for name in names) + self._chroot

    def _proxy(self, server: str) -> TcpProxy:
        host, _, port = self._reach.connect_to(server).rpartition(":")
        proxy = TcpProxy(self._live.loop, host, int(port))
        self._proxies.append(proxy)
        return proxy

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
