"""The faults' handles on ZooKeeper servers (`trials.stage.Servers`): those started for a trial, and those that are
not the lab's (`world.live.foreign`), which are left alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar

from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.stage import TrialError
from rebalance_lab.trials.stages.processes.stage import LiveStage
from rebalance_lab.world.live.ensemble import EmbeddedEnsemble
from rebalance_lab.world.live.ensemble_base import Ensemble
from rebalance_lab.world.live.foreign import CONNECT_VARIABLE, ForeignZooKeeper

E = TypeVar("E", bound=Ensemble[Any])


class EnsembleServers(Generic[E]):
    """What is the same for servers in processes and in containers. Requests that they do not allow raise
    EmbeddedServerError."""

    def __init__(self, ensemble: E) -> None:
        self._ensemble = ensemble

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._ensemble.servers)

    async def leader(self) -> str:
        return await self._ensemble.leader()

    async def lag(self, name: str, delay_ms: int) -> str:
        self._ensemble.lag(name, delay_ms)
        return str(self._ensemble.lag_seen(name))

    async def last_zxid(self, name: str) -> int:
        zxid = (await self._ensemble.standings())[name].zxid
        if zxid is None:
            raise TrialError(f"server {name} does not report its zxid: it is not serving")
        return zxid


class LiveServers(EnsembleServers[EmbeddedEnsemble]):
    """Servers that are processes of this machine."""

    async def kill(self, name: str) -> str:
        self._ensemble.kill(name)
        return self._shown(name)

    async def start(self, name: str) -> str:
        self._ensemble.start_node(name)
        await self._ensemble.serving(name)
        return self._shown(name)

    async def pause(self, name: str) -> str:
        self._ensemble.pause(name)
        return self._shown(name)

    async def resume(self, name: str) -> str:
        self._ensemble.resume(name)
        return self._shown(name)

    def _shown(self, name: str) -> str:
        server = self._ensemble.servers[name]
        return f"server {name} (pid {server.pid}) is {server.state.value}"


class ForeignServers:
    """The faults' handle on servers that are not the lab's: they are left alone (`trials.stage.Servers`)."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    @property
    def names(self) -> tuple[str, ...]:
        return self._names

    async def _refuse(self, *_asked: object, **_named: object) -> NoReturn:
        raise TrialError(f"the servers are not the lab's ({CONNECT_VARIABLE}): unset it for faults of servers")

    leader = kill = start = pause = resume = lag = last_zxid = _refuse


@contextmanager
def foreign_stage(plan: Plan, folder: Path, live: LiveKernel, zookeeper: ForeignZooKeeper) -> Iterator[LiveStage]:
    """A stage below a znode of its own, which is deleted at the end. Raises EmbeddedServerError."""
    zookeeper.prepare(plan.number("session_timeout_ms"))
    try:
        servers = ForeignServers(tuple(zookeeper.servers))
        yield LiveStage(plan, folder, live, zookeeper, servers, log=zookeeper.log(), chroot=zookeeper.chroot)
    finally:
        zookeeper.clean()
