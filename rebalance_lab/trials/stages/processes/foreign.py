"""Trials on a ZooKeeper that is not the lab's (`world.live.foreign`): the lab controls the members, but
not the servers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.stage import TrialError
from rebalance_lab.trials.stages.processes.stage import LiveStage
from rebalance_lab.world.live.foreign import CONNECT_VARIABLE, ForeignZooKeeper


class ForeignServers:
    """The faults' handle on servers that are not the lab's: they are left alone (`trials.stage.Servers`)."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    @property
    def names(self) -> tuple[str, ...]:
        return self._names

    async def leader(self) -> str:
        self._refuse()

    async def kill(self, name: str) -> str:
        self._refuse()

    async def start(self, name: str) -> str:
        self._refuse()

    async def pause(self, name: str) -> str:
        self._refuse()

    async def resume(self, name: str) -> str:
        self._refuse()

    async def lag(self, name: str, delay_ms: int) -> str:
        self._refuse()

    async def last_zxid(self, name: str) -> int:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise TrialError(f"the servers are not the lab's ({CONNECT_VARIABLE}): unset it for faults of servers")


@contextmanager
def foreign_stage(plan: Plan, folder: Path, live: LiveKernel, zookeeper: ForeignZooKeeper) -> Iterator[LiveStage]:
    """A stage below a znode of its own, which is deleted at the end. Raises EmbeddedServerError."""
    zookeeper.prepare(plan.number("session_timeout_ms"))
    try:
        servers = ForeignServers(tuple(zookeeper.servers))
        yield LiveStage(plan, folder, live, zookeeper, servers, log=zookeeper.log(), chroot=zookeeper.chroot)
    finally:
        zookeeper.clean()
