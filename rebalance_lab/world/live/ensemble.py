"""An ensemble of real ZooKeeper servers of our own, as child processes. No Docker needed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from rebalance_lab.kernel import Future
from rebalance_lab.world.live.ensemble_node import EnsembleNode, Standing
from rebalance_lab.world.live.java import EmbeddedServerError
from rebalance_lab.world.live.processes import RunState
from rebalance_lab.world.live.quorum_lag import LagSeen, QuorumLag
from rebalance_lab.world.live.server_process import DEFAULT_TICK_MS, START_TIMEOUT_S, STOP_TIMEOUT_S

T = TypeVar("T")

_POLL_S = 0.02

#: Ticks of silence after which leader and follower give each other up: 5 s at 500 ms. Less, and
#: a busy machine takes an ensemble apart that nobody harmed.
DEFAULT_SYNC_LIMIT_TICKS = 10


class EmbeddedEnsemble:
    """Nodes z1, z2, … on 127.0.0.1. Make it with `start`; end it with `stop`, or as a context.

    The nodes die with the process that started them, even by kill -9 (see `die_with_parent`:
    start it, and nodes of it, from a thread that lives as long). Methods without a future do
    not wait for the other nodes; those that give a kernel's future need the live kernel's loop
    to be running, which it is for every task of it.
    """

    def __init__(self, nodes: dict[str, EnsembleNode], lag: QuorumLag | None, lag_nodes: tuple[str, ...]) -> None:
        self.servers = nodes
        self.lag_nodes = lag_nodes
        self._lag = lag
        self._asking: dict[asyncio.Task[Any], None] = {}

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

    # -- facts ------------------------------------------------------------------------------

    @property
    def connect_string(self) -> str:
        return ",".join(node.connect_string for node in self.servers.values())

    def connect_to(self, name: str) -> str:
        """The connect string of one node. Raises KeyError."""
        return self.servers[name].connect_string

    @property
    def pids(self) -> list[int]:
        """Of each node's latest process, in the order of names."""
        return [node.pid for node in self.servers.values()]

    @property
    def data_dirs(self) -> list[Path]:
        """What an `EnsembleLog` follows."""
        return [node.transaction_dir for node in self.servers.values()]

    def standings_now(self) -> dict[str, Standing]:
        """Asks every node that runs, one by one, and waits for each answer."""
        return {name: node.standing_now() for name, node in self.servers.items()}

    def leader_now(self) -> str | None:
        """Who leads a majority right now; None during an election. Waits as `standings_now`."""
        return self._leader_of(self.standings_now())

    def _leader_of(self, standings: dict[str, Standing]) -> str | None:
        """Two may say that they lead, for a moment, when one was paused: then nobody is named."""
        leaders = [name for name, standing in standings.items() if standing.leads]
        serving = sum(standing.mode is not None for standing in standings.values())
        return leaders[0] if len(leaders) == 1 and 2 * serving > len(self.servers) else None

    def wait_until_ready(self, timeout_s: float = START_TIMEOUT_S) -> str:
        """Wait until every node serves and one leads; gives its name. Raises EmbeddedServerError:
        a node's process has ended, or the time is over."""
        deadline = time.monotonic() + timeout_s
        while True:
            standings = self.standings_now()
            leader = self._leader_of(standings)
            if leader is not None and all(standing.mode is not None for standing in standings.values()):
                return leader
            self._check(standings, deadline, f"not every node serves after {timeout_s:g} s", list(self.servers))
            time.sleep(_POLL_S)

    def _check(self, standings: dict[str, Standing], deadline: float, complaint: str, needed: list[str]) -> None:
        """Whether it makes sense to wait on. Raises EmbeddedServerError."""
        for name in needed:
            ended = self.servers[name].ended_by_itself()
            if ended is not None:
                raise EmbeddedServerError(ended)
        if time.monotonic() > deadline:
            states = "; ".join(str(standing) for standing in standings.values())
            tails = "".join(self.servers[name].process.log_tail() for name in needed)
            raise EmbeddedServerError(f"{complaint} ({states}){tails}")

    # -- facts, as futures ------------------------------------------------------------------

    def standings(self) -> Future[dict[str, Standing]]:
        return self._future(self._standings(), "the standings of the ensemble")

    def leader(self, timeout_s: float = START_TIMEOUT_S) -> Future[str]:
        """Who leads a majority, once somebody does. Fails with EmbeddedServerError."""
        return self._future(self._leader(timeout_s), "a leader of the ensemble")

    def serving(self, name: str, timeout_s: float = START_TIMEOUT_S) -> Future[None]:
        """Done when a node serves. Fails with EmbeddedServerError: its process has ended, or
        the time is over (it does not serve without a majority)."""
        return self._future(self._serving(name, timeout_s), f"{name} to serve")

    async def _standings(self) -> dict[str, Standing]:
        found = await asyncio.gather(*(node.standing() for node in self.servers.values()))
        return {standing.name: standing for standing in found}

    async def _leader(self, timeout_s: float) -> str:
        deadline = time.monotonic() + timeout_s
        while (leader := self._leader_of(standings := await self._standings())) is None:
            self._check(standings, deadline, f"nobody leads after {timeout_s:g} s", [])
            await asyncio.sleep(_POLL_S)
        return leader

    async def _serving(self, name: str, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while (standings := await self._standings())[name].mode is None:
            self._check(standings, deadline, f"{name} does not serve after {timeout_s:g} s", [name])
            await asyncio.sleep(_POLL_S)

    def _future(self, work: Coroutine[Any, Any, T], label: str) -> Future[T]:
        """What asyncio finds out, as a future of the kernel."""
        future: Future[T] = Future(label)
        task = asyncio.get_running_loop().create_task(work)
        self._asking[task] = None

        def done(task: asyncio.Task[T]) -> None:
            self._asking.pop(task, None)
            error = EmbeddedServerError(f"stopped while waiting for {label}") if task.cancelled() else task.exception()
            if error is None:
                future.set(task.result())
            else:
                future.fail(error)

        task.add_done_callback(done)
        return future

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
        return self._future(self._gone(name), f"{name} to end")

    async def _gone(self, name: str) -> None:
        node = self.servers[name]
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while node.state is not RunState.GONE:
            if time.monotonic() > deadline:
                node.process.kill()
            await asyncio.sleep(_POLL_S)

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
        for task in list(self._asking):
            if not task.get_loop().is_closed():
                task.cancel()
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
