"""The faults' handle on ZooKeeper servers in containers (`trials.stage.Servers`)."""

from __future__ import annotations

from collections.abc import Callable

from rebalance_lab.trials.stage import TrialError
from rebalance_lab.trials.stages.containers.nodes import Threads
from rebalance_lab.trials.stages.processes.servers import EnsembleServers
from rebalance_lab.world.containers.container import KILLED
from rebalance_lab.world.containers.ensemble import ContainerEnsemble
from rebalance_lab.world.process.states import RunState


class ContainerServers(EnsembleServers[ContainerEnsemble]):
    """Docker acts, and its report afterwards is the proof, or a TrialError. Impossible requests raise
    ContainersError."""

    def __init__(self, ensemble: ContainerEnsemble, threads: Threads) -> None:
        super().__init__(ensemble)
        self._threads = threads

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

    async def partition(self, name: str) -> str:
        return await self._done(self._ensemble.partition, name, RunState.ALIVE, peers=False)

    async def rejoin(self, name: str) -> str:
        return await self._done(self._ensemble.rejoin, name, RunState.ALIVE, peers=True)

    async def serving(self, name: str) -> bool:
        """Whether the server serves right now."""
        return (await self._ensemble.standings())[name].mode is not None

    async def _done(
        self, work: Callable[[str], None], name: str, wanted: RunState, *, peers: bool | None = None
    ) -> str:
        """Let docker do it, and check the result; both in a thread. `peers`: whether the peers' network should be
        connected then; None if it was not changed."""
        node = self._ensemble.servers[name]

        def do() -> str:
            work(name)
            on = [each for each in (node.networks.clients, node.networks.peers) if each.has(node.container)]
            where = ", ".join(each.name for each in on) or "no network"
            state, code = node.state, node.exit_code
            shown = f"{node.container.name} is {node.container.status}, on {where}"
            if state is not wanted or code not in (None, KILLED) or peers not in (None, node.networks.peers in on):
                raise TrialError(
                    f"server {name}: {work.__name__} did not take effect: docker says {shown}, exit code {code}"
                )
            return f"docker: {shown}"

        return str(await self._threads(do, f"{work.__name__} of {name}"))
