"""The faults' handles on ZooKeeper servers that were started for a trial (`trials.stage.Servers`)."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from rebalance_lab.trials.stage import TrialError
from rebalance_lab.world.live.ensemble import EmbeddedEnsemble
from rebalance_lab.world.live.ensemble_base import Ensemble

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
