"""The faults' handle on ZooKeeper servers in containers (`trials.stage.Servers`)."""

from __future__ import annotations

from rebalance_lab.trials.stage import TrialError
from rebalance_lab.trials.stages.processes.servers import EnsembleServers
from rebalance_lab.world.containers.ensemble import ContainerEnsemble
from rebalance_lab.world.containers.networks import PrivateNetwork
from rebalance_lab.world.process.states import RunState


class ContainerServers(EnsembleServers[ContainerEnsemble]):
    """Docker acts, and its report afterwards is the proof, or a TrialError."""

    async def partition(self, name: str) -> str:
        proof = await self._done(self._ensemble.partition, name, RunState.ALIVE)
        return await self._with_peers(name, proof, connected=False)

    async def rejoin(self, name: str) -> str:
        proof = await self._done(self._ensemble.rejoin, name, RunState.ALIVE)
        return await self._with_peers(name, proof, connected=True)

    async def serving(self, name: str) -> bool:
        """Whether the server serves right now."""
        return (await self._ensemble.standings())[name].mode is not None

    def _networks(self, name: str) -> list[PrivateNetwork]:
        server = self._ensemble.servers[name]
        return [each for each in (server.networks.clients, server.networks.peers) if each.has(server.container)]

    def _proof(self, name: str) -> str:
        return f"{super()._proof(name)}, on {', '.join(each.name for each in self._networks(name)) or 'no network'}"

    async def _with_peers(self, name: str, proof: str, *, connected: bool) -> str:
        def look() -> bool:
            return self._ensemble.servers[name].networks.peers in self._networks(name)

        if await self._carry_out(look, f"the networks of {name}") is not connected:
            raise TrialError(f"server {name}: its peers' network was not changed: {proof}")
        return proof
