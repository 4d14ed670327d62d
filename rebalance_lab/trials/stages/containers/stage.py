"""A stage in containers: servers and nodes in containers of their own, on networks that docker can
cut."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from rebalance_lab.kernel import Future
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.record import source_digest
from rebalance_lab.trials.stage import LAGGARD
from rebalance_lab.trials.stages.containers.nodes import ContainerNode
from rebalance_lab.trials.stages.containers.servers import ContainerServers
from rebalance_lab.trials.stages.processes.nodes import NodeProcess
from rebalance_lab.trials.stages.processes.stage import LiveStage
from rebalance_lab.world.containers.engine import LAB_IMAGE, ZOOKEEPER_IMAGE, Engine
from rebalance_lab.world.containers.ensemble import ContainerEnsemble
from rebalance_lab.world.containers.networks import PrivateNetwork
from rebalance_lab.world.containers.nodes import TRIAL_DIR, NodeContainer
from rebalance_lab.world.live.proxy import TcpProxy
from rebalance_lab.world.power_loss import PowerLoss

#: At which a node in a container listens if it is to be found again.
CONTAINER_PORT = 9092

T = TypeVar("T")

_log = logging.getLogger(__name__)


class ContainerStage(LiveStage):
    """Files are read as in a live stage: event files and transaction logs lie in the trial's folder, which the
    containers share with the runner. They must also share the runner's clock: each process reports its boot id and
    time namespace, which shows whether they do. Docker takes its time with each question, so a thread asks it."""

    check_every = 50

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        live: LiveKernel,
        engine: Engine,
        ensemble: ContainerEnsemble,
        nodes: PrivateNetwork,
    ) -> None:
        def in_thread(work: Callable[[], T], label: str) -> Future[T]:
            return ensemble.future(asyncio.to_thread(work), label)

        super().__init__(plan, folder, live, ensemble, ContainerServers(ensemble, in_thread), carry_out=in_thread)
        self._engine = engine
        self._clients = ensemble.networks.clients
        self._nodes = nodes

    def versions(self) -> dict[str, str]:
        """The versions, including those of the images."""
        return super().versions() | image_versions(self._engine)

    def _proxies_to(self, _servers: tuple[str, ...]) -> list[TcpProxy]:
        """None: docker cuts a container's network."""
        return []

    def _node(
        self, actor: str, runs_in: NodeProcess, _proxies: list[TcpProxy], lose_power: Callable[..., PowerLoss]
    ) -> ContainerNode:
        return ContainerNode(actor, runs_in, self.kernel, lose_power, self._carry_out)

    def _seen_by_nodes(self, file: Path) -> str:
        return str(TRIAL_DIR / file.name)

    def _make(self, name: str, spec_file: Path) -> NodeContainer:
        command = ["python", "-m", "rebalance_lab.roles.main", self._seen_by_nodes(spec_file)]
        return NodeContainer(self._engine, name, self.folder, command, clients=self._clients, nodes=self._nodes)

    def port(self, actor: str) -> int:
        """Each container has an address of its own."""
        return CONTAINER_PORT


def image_versions(engine: Engine) -> dict[str, str]:
    """The images' ids, and the versions of the lab here and in the image. Warns if the two labs differ."""
    images = {ours: engine.image_facts(ours) for ours in (ZOOKEEPER_IMAGE, LAB_IMAGE)}
    here, there = source_digest(), images[LAB_IMAGE][1] or "not told"
    if here != there:
        _log.warning(
            "nodes run the lab in image %s (%s), which is not this one (%s); scripts/images lab makes one of this lab",
            engine.image(LAB_IMAGE),
            there[:12],
            here[:12],
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
            yield live, ContainerStage(plan, folder, live, engine, ensemble, PrivateNetwork(engine, "nodes"))
