"""A stage in containers: servers and nodes in containers of their own, on networks that docker can
cut."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import structlog

from rebalance_lab.kernel import Future
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.record import source_digest
from rebalance_lab.trials.stage import LAGGARD, NodeOptions
from rebalance_lab.trials.stages.containers.nodes import ContainerHost, ContainerNode
from rebalance_lab.trials.stages.containers.servers import ContainerServers
from rebalance_lab.trials.stages.processes.nodes import EventFile
from rebalance_lab.trials.stages.processes.stage import FOLLOW_PERIOD_US, LiveStage
from rebalance_lab.world.containers.engine import LAB_IMAGE, ZOOKEEPER_IMAGE, Engine
from rebalance_lab.world.containers.ensemble import ContainerEnsemble
from rebalance_lab.world.containers.member import TRIAL_DIR, ProcessContainer

#: Docker is asked whether every container still runs once in so many reads of the files.
CHECK_EVERY = 50

#: At which a node in a container listens if it is to be found again.
CONTAINER_PORT = 9092

_log = structlog.get_logger("rebalance_lab.trials")


class ContainerStage(LiveStage):
    """Files are read as in a live stage: event files and transaction logs lie in the trial's folder, which the
    containers share with the runner. They must also share the runner's clock: each process reports its boot id and
    time namespace, which shows whether they do."""

    def __init__(self, plan: Plan, folder: Path, live: LiveKernel, engine: Engine, ensemble: ContainerEnsemble) -> None:
        self._ensemble = ensemble
        super().__init__(plan, folder, live, ensemble, ContainerServers(ensemble, self._in_thread))
        self._engine = engine
        self._network = ensemble.networks.clients
        self._hosts: dict[str, ContainerHost] = {}

    def versions(self) -> dict[str, str]:
        """The versions, including those of the images."""
        return super().versions() | image_versions(self._engine)

    def _in_thread(self, work: Callable[[], Any], label: str) -> Future[Any]:
        return self._ensemble.future(asyncio.to_thread(work), label)

    async def follow(self) -> None:
        """Read what members and servers write, as long as the trial runs."""
        while True:
            ended = await self._ended()
            self.poll()  # all that those have written
            self._let_refused_end()
            for host in ended:
                host.check()
            for _ in range(CHECK_EVERY):
                self.poll()
                await self.kernel.sleep(FOLLOW_PERIOD_US)

    def _ended(self) -> Future[list[ContainerHost]]:
        """The containers that have ended. Runs in a thread, as docker takes its time with each."""
        hosts = list(self._hosts.values())
        return self._in_thread(
            lambda: [host for host in hosts if host.container.exit_code is not None], "docker to tell who has ended"
        )

    def _let_refused_end(self) -> None:
        for host in self._hosts.values():
            host.may_end = host.may_end or self.tracker.refused(host.nodes)

    def start(self, actor: str, options: NodeOptions) -> ContainerNode:
        """Start a node, in a container of its own or in a shared one. Raises TrialError, ContainersError."""
        connect = self._connect(options.servers or self.servers.names)
        events = f"{actor}.jsonl"
        spec = options.spec(self.plan, actor, connect=connect, events=str(TRIAL_DIR / events))
        name = options.shares_process or actor
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = ContainerHost(name, [spec], self.folder, self._container)
        else:
            host.start(spec)
        self._files.append(EventFile(self.folder / events))
        self.links.add(actor, host)
        return ContainerNode(actor, host, self._in_thread, self._power_of(actor, self.folder / spec.files.name))

    def port(self, actor: str) -> int:
        """Each container has an address of its own."""
        return CONTAINER_PORT

    def _container(self, name: str, command: list[str]) -> ProcessContainer:
        return ProcessContainer(self._engine, name, self._network, self.folder, command)

    def wait_for_processes(self) -> None:
        """Wait until the containers of nodes that left have ended. Raises TrialError for one that ended badly."""
        self._let_refused_end()
        for host in self._hosts.values():
            host.wait()

    def end_processes(self) -> None:
        """Remove every node's container; its output stays."""
        super().end_processes()
        for host in self._hosts.values():
            host.end()


def image_versions(engine: Engine) -> dict[str, str]:
    """The images' ids, and the versions of the lab here and in the image. Warns if the two labs differ."""
    images = {ours: engine.image_facts(ours) for ours in (ZOOKEEPER_IMAGE, LAB_IMAGE)}
    here, there = source_digest(), images[LAB_IMAGE][1] or "not told"
    if here != there:
        _log.warning(
            "another_lab_in_the_image",
            image=engine.image(LAB_IMAGE),
            its_source=there[:12],
            our_source=here[:12],
            action="members run the image's lab; scripts/images lab makes one of this lab",
        )
    ids = {f"image {ours}": found for ours, (found, _) in images.items()}
    return ids | {"lab source": here, "lab source in the image": there}


@contextmanager
def set_up(plan: Plan, folder: Path) -> Iterator[tuple[LiveKernel, ContainerStage]]:
    """The plan's servers in containers, and a stage on them. Raises ContainersError."""
    nodes, tick_ms = plan.number("servers"), plan.number("tick_ms")
    laggards = (LAGGARD,) if nodes > 1 else ()
    with Engine() as engine:
        engine.image(LAB_IMAGE)  # before servers are started in vain
        with (
            ContainerEnsemble.start(engine, folder / "zookeeper", nodes, tick_ms, laggards) as ensemble,
            LiveKernel() as live,
        ):
            yield live, ContainerStage(plan, folder, live, engine, ensemble)
