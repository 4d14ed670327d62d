"""An ensemble of real ZooKeeper servers of our own, as child processes. No Docker needed."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from types import TracebackType

from rebalance_lab.kernel import Future
from rebalance_lab.world.live.ensemble_base import POLL_S, Ensemble
from rebalance_lab.world.live.ensemble_node import EnsembleNode
from rebalance_lab.world.live.java import EmbeddedServerError
from rebalance_lab.world.live.processes import RunState
from rebalance_lab.world.live.quorum_lag import LagSeen, QuorumLag
from rebalance_lab.world.live.server_process import DEFAULT_TICK_MS, STOP_TIMEOUT_S

#: Ticks of silence after which leader and follower give each other up: 5 s at 500 ms. Less, and
#: a busy machine takes an ensemble apart that nobody harmed.
DEFAULT_SYNC_LIMIT_TICKS = 10


class EmbeddedEnsemble(Ensemble[EnsembleNode]):
    """Nodes z1, z2, … on 127.0.0.1. Make it with `start`; end it with `stop`, or as a context.

    The nodes die with the process that started them, even by kill -9 (see `die_with_parent`:
    start it, and nodes of it, from a thread that lives as long).
    """

    def __init__(self, nodes: dict[str, EnsembleNode], lag: QuorumLag | None, lag_nodes: tuple[str, ...]) -> None:
        super().__init__(nodes)
        self.lag_nodes = lag_nodes
        self._lag = lag

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
        ensemble = cls(made, QuorumLag() if lag_nodes else None, lag_nodes)
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

    def kill(self, name: str) -> None:
        """End a node at once (SIGKILL); returns when it is gone."""
        self.servers[name].process.kill()

    def start_node(self, name: str) -> None:
        """Start a node again on its data and its ports, and do not wait: see `serving`. Raises
        EmbeddedServerError when it runs."""
        self.servers[name].launch()

    def stop_node(self, name: str) -> Future[None]:
        """Ask a node to end (SIGTERM); done when it has, by force after five seconds."""
        self.servers[name].process.terminate()
        return self.future(self._gone(name), f"{name} to end")

    async def _gone(self, name: str) -> None:
        node = self.servers[name]
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while node.state is not RunState.GONE:
            if time.monotonic() > deadline:
                node.process.kill()
            await asyncio.sleep(POLL_S)

    def pause(self, name: str) -> None:
        """SIGSTOP; returns when the process is seen stopped. The others miss it after the sync
        limit. Raises EmbeddedServerError."""
        self.servers[name].process.pause()

    def resume(self, name: str) -> None:
        """SIGCONT; returns when the process is seen running. Raises EmbeddedServerError."""
        self.servers[name].process.resume()

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

    # -- lag --------------------------------------------------------------------------------

    def lag(self, name: str, delay_ms: int) -> None:
        """From now on a follower applies what the leader commits so much later; 0 heals it.

        It logs and acknowledges in time, and its sessions live on (see `live.quorum_lag`). After
        a change of leader it is brought up to date, and lags again. Raises EmbeddedServerError:
        the node leads, or was not started as one of `lag_nodes`.
        """
        if self._lag is None or name not in self.lag_nodes:
            raise EmbeddedServerError(f"{name} cannot lag: start the ensemble with lag_nodes=({name!r},)")
        if delay_ms < 0:
            raise ValueError(f"a delay of {delay_ms} ms")
        if delay_ms > 0 and not self._lag.seen(name).following:
            raise EmbeddedServerError(f"{name} follows nobody now: only followers lag")
        self._lag.set_delay(name, delay_ms)

    def lag_seen(self, name: str) -> LagSeen:
        """What the proxies of a node have done. Raises EmbeddedServerError as `lag`."""
        if self._lag is None or name not in self.lag_nodes:
            raise EmbeddedServerError(f"{name} cannot lag: start the ensemble with lag_nodes=({name!r},)")
        return self._lag.seen(name)

    # -- end --------------------------------------------------------------------------------

    def stop(self) -> None:
        """End every node in order (SIGTERM), by force after five seconds. Harmless when ended."""
        self.stop_asking()
        started = [node.process for node in self.servers.values() if node.started]
        for process in started:
            process.terminate()
        for process in started:
            process.stop()
        if self._lag is not None:
            self._lag.close()
        for node in self.servers.values():
            node.close()

    def __enter__(self) -> EmbeddedEnsemble:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
