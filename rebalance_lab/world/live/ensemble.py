"""An ensemble of real ZooKeeper servers of our own, as child processes. No Docker needed."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from rebalance_lab.kernel import Future
from rebalance_lab.world.live.ensemble_base import POLL_S, Ensemble
from rebalance_lab.world.live.server_process import DEFAULT_TICK_MS, EnsembleNode
from rebalance_lab.world.process.states import RunState

#: Ticks of silence after which leader and follower give each other up: 5 s at 500 ms. Less, and
#: a busy machine takes an ensemble apart that nobody harmed.
DEFAULT_SYNC_LIMIT_TICKS = 10


class EmbeddedEnsemble(Ensemble[EnsembleNode]):
    """Nodes z1, z2, … on 127.0.0.1. Make it with `start`.

    The nodes die with the process that started them, even by kill -9 (see `die_with_parent`:
    start it, and nodes of it, from a thread that lives as long).
    """

    @classmethod
    def start(
        cls,
        data_dir: Path,
        nodes: int = 3,
        tick_ms: int = DEFAULT_TICK_MS,
        lag_nodes: tuple[str, ...] = (),
        *,
        sync_limit_ticks: int = DEFAULT_SYNC_LIMIT_TICKS,
    ) -> EmbeddedEnsemble:
        """Start the nodes and wait until all serve and one leads; three take about two seconds.

        Their data are under `data_dir`/z1 and so on; data found there are taken up. `lag_nodes`:
        those that `lag` may slow down. One node is a standalone server. Raises ValueError for
        numbers and names that cannot be, EmbeddedServerError when a node does not start.
        """
        names = [f"z{number}" for number in range(1, nodes + 1)]
        if nodes < 1:
            raise ValueError(f"an ensemble of {nodes} nodes: give one at least")
        unknown = [name for name in lag_nodes if name not in names]
        if unknown or (lag_nodes and nodes == 1):
            raise ValueError(f"lag_nodes {lag_nodes} of {', '.join(names)}: name followers of an ensemble")
        made = {
            name: EnsembleNode(name, number, data_dir.absolute() / name, tick_ms)
            for number, name in enumerate(names, start=1)
        }
        ensemble = cls(made, lag_nodes)
        try:
            ensemble._configure(sync_limit_ticks)
            for node in made.values():
                node.launch()
            ensemble.wait_until_ready()
        except BaseException:
            ensemble.stop()
            raise
        return ensemble

    def _configure(self, sync_limit_ticks: int) -> None:
        if len(self.servers) == 1:
            return
        for node in self.servers.values():
            seen: dict[int, tuple[int, int]] = {}
            for other in self.servers.values():
                quorum_port = other.quorum_port
                if self._lag is not None and node.name in self.lag_nodes and other is not node:
                    quorum_port = self._lag.add(node.name, quorum_port)
                seen[other.number] = (quorum_port, other.election_port)
            node.join(seen, sync_limit_ticks)

    @property
    def pids(self) -> list[int]:
        """Of each node's latest process, in the order of names."""
        return [node.pid for node in self.servers.values()]

    # -- faults -----------------------------------------------------------------------------

    def stop_node(self, name: str) -> Future[None]:
        """Ask a node to end (SIGTERM); done when it has, by force after five seconds."""
        self.servers[name].terminate()
        return self.future(self._gone(name), f"{name} to end")

    async def _gone(self, name: str) -> None:
        node = self.servers[name]
        deadline = time.monotonic() + node.stop_timeout_s
        while node.state is not RunState.GONE:
            if time.monotonic() > deadline:
                node.kill()
            await asyncio.sleep(POLL_S)

    async def rolling_restart(self) -> list[str]:
        """Stop and start every node in order, one at a time, the leader last: each must serve
        again before the next. Gives the order. For tasks of a live kernel."""
        leader = await self.leader()
        order = [*(name for name in self.servers if name != leader), leader]
        for name in order:
            await self.stop_node(name)
            self.start_node(name)
            await self.serving(name)
            await self.leader()
        return order

    # -- end --------------------------------------------------------------------------------

    def stop(self) -> None:
        """End every node in order (SIGTERM), by force after five seconds. Harmless when ended."""
        self.stop_asking()
        for node in self.servers.values():
            node.terminate()
        for node in self.servers.values():
            node.stop()
        if self._lag is not None:
            self._lag.close()
        for node in self.servers.values():
            node.close()
