"""Trials in containers: ZooKeeper servers and members in containers of their own, with docker as the
means of every fault. Needs a docker engine on this machine, and the lab's images."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.trials.container_stage import ContainerStage
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.stage import LAGGARD
from rebalance_lab.world.containers.engine import LAB_IMAGE, Engine
from rebalance_lab.world.containers.ensemble import ContainerEnsemble


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
