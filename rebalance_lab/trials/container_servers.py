"""The faults' handle on ZooKeeper servers in containers (`trials.stage.Servers`)."""

from __future__ import annotations

from collections.abc import Callable

from rebalance_lab.trials.container_members import Threads
from rebalance_lab.trials.stage import TrialError
from rebalance_lab.world.containers.ensemble import ContainerEnsemble


class ContainerServers:
    """Docker does it; what it says is the proof. What cannot be raises ContainersError."""

    def __init__(self, ensemble: ContainerEnsemble, threads: Threads) -> None:
        self._ensemble = ensemble
        self._threads = threads

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._ensemble.servers)

    async def leader(self) -> str:
        return await self._ensemble.leader()

    async def kill(self, name: str) -> str:
        return await self._done(self._ensemble.kill, name)

    async def start(self, name: str) -> str:
        shown = await self._done(self._ensemble.start_node, name)
        await self._ensemble.serving(name)
        return shown

    async def pause(self, name: str) -> str:
        return await self._done(self._ensemble.pause, name)

    async def resume(self, name: str) -> str:
        return await self._done(self._ensemble.resume, name)

    async def partition(self, name: str) -> str:
        return await self._done(self._ensemble.partition, name)

    async def rejoin(self, name: str) -> str:
        return await self._done(self._ensemble.rejoin, name)

    async def lag(self, name: str, delay_ms: int) -> str:
        self._ensemble.lag(name, delay_ms)
        return str(self._ensemble.lag_seen(name))

    async def last_zxid(self, name: str) -> int:
        zxid = (await self._ensemble.standings())[name].zxid
        if zxid is None:
            raise TrialError(f"server {name} does not tell its zxid: it serves nobody")
        return zxid

    async def serving(self, name: str) -> bool:
        """Whether it serves right now."""
        return (await self._ensemble.standings())[name].mode is not None

    async def _done(self, work: Callable[[str], None], name: str) -> str:
        await self._threads(lambda: work(name), f"{work.__name__} of {name}")
        node = self._ensemble.servers[name]
        networks = node.networks
        on = [each for each in (networks.clients, networks.peers) if each.has(node.container)]
        where = ", ".join(each.name for each in on) or "no network"
        return f"docker: {node.container.name} is {node.container.status}, on {where}"
