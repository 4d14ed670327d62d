"""The faults' handles on ZooKeeper servers (`trials.stage.Servers`): those started for a trial, and those that are
not the lab's (`world.live.foreign`), which are left alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar

from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.stage import TrialError
from rebalance_lab.trials.stages.processes.nodes import CarryOut, at_once
from rebalance_lab.trials.stages.processes.stage import LiveStage
from rebalance_lab.world.live.ensemble_base import Ensemble
from rebalance_lab.world.live.foreign import CONNECT_VARIABLE, ForeignZooKeeper
from rebalance_lab.world.process.states import RunState

E = TypeVar("E", bound=Ensemble[Any])


class EnsembleServers(Generic[E]):
    """Servers that were started for the trial, in processes or in containers. `carry_out`: how what blocks is carried
    out. Requests that they do not allow raise EmbeddedServerError; a fault that did not take effect, TrialError."""

    def __init__(self, ensemble: E, carry_out: CarryOut = at_once) -> None:
        self._ensemble = ensemble
        self._carry_out = carry_out

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._ensemble.servers)

    async def leader(self) -> str:
        return await self._ensemble.leader()

    async def kill(self, name: str) -> str:
        return await self._done(self._ensemble.kill, name, RunState.GONE)

    async def start(self, name: str) -> str:
        shown = await self._done(self._ensemble.start_node, name, RunState.ALIVE)
        await self._ensemble.serving(name)
        return shown

    async def pause(self, name: str) -> str:
        return await self._done(self._ensemble.pause, name, RunState.STOPPED)

    async def resume(self, name: str) -> str:
        return await self._done(self._ensemble.resume, name, RunState.ALIVE)

    async def lag(self, name: str, delay_ms: int) -> str:
        self._ensemble.lag(name, delay_ms)
        return str(self._ensemble.lag_seen(name))

    async def last_zxid(self, name: str) -> int:
        zxid = (await self._ensemble.standings())[name].zxid
        if zxid is None:
            raise TrialError(f"server {name} does not report its zxid: it is not serving")
        return zxid

    async def _done(self, work: Callable[[str], None], name: str, wanted: RunState) -> str:
        """Do it, and look at the result."""

        def do() -> str:
            work(name)
            server = self._ensemble.servers[name]
            code, proof = server.exit_code, self._proof(name)
            if server.state is not wanted or code not in (None, server.killed):
                raise TrialError(f"server {name}: {work.__name__} did not take effect: {proof}")
            return f"server {name}: {proof}"

        return await self._carry_out(do, f"{work.__name__} of {name}")

    def _proof(self, name: str) -> str:
        return str(self._ensemble.servers[name].proof())


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
