"""An ensemble of real ZooKeeper servers, wherever they run: what can be asked of it, and its faults."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from rebalance_lab.kernel import Future
from rebalance_lab.world.live.java import EmbeddedServerError
from rebalance_lab.world.live.quorum_lag import LagSeen, QuorumLag
from rebalance_lab.world.live.server_process import START_TIMEOUT_S
from rebalance_lab.world.live.zookeeper_node import Standing, ZooKeeperNode

T = TypeVar("T")

POLL_S = 0.02


N = TypeVar("N", bound=ZooKeeperNode)


class Ensemble(ABC, Generic[N]):
    """Nodes z1, z2, …; a context that ends with `stop`. `lag_nodes`: those that `lag` may slow down.

    Methods without a future may wait for an answer of each node. Those that give a kernel's future need the live
    kernel's loop to be running, which it is for every task of it. Raises EmbeddedServerError (in containers its
    subclass ContainersError).
    """

    #: What faults raise.
    error: ClassVar[type[EmbeddedServerError]] = EmbeddedServerError

    def __init__(self, nodes: dict[str, N], lag_nodes: tuple[str, ...]) -> None:
        self.servers = nodes
        self.lag_nodes = lag_nodes
        self._lag = QuorumLag() if lag_nodes else None
        self._asking: dict[asyncio.Task[Any], None] = {}

    # -- facts ------------------------------------------------------------------------------

    @property
    def connect_string(self) -> str:
        return ",".join(node.connect_string for node in self.servers.values())

    def connect_to(self, name: str) -> str:
        """The connect string of one node. Raises KeyError."""
        return self.servers[name].connect_string

    @property
    def data_dirs(self) -> list[Path]:
        """What an `EnsembleLog` follows."""
        return [node.transaction_dir for node in self.servers.values()]

    def standings_now(self) -> dict[str, Standing]:
        """Asks every node that runs, one by one, and waits for each answer."""
        return {name: node.standing_now() for name, node in self.servers.items()}

    def leader_now(self) -> str | None:
        """The node that leads a majority now; None during an election. Waits as `standings_now`."""
        return self._leader_of(self.standings_now())

    def _leader_of(self, standings: dict[str, Standing]) -> str | None:
        """None while two nodes claim to lead, as may happen for a moment after one was paused."""
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
            time.sleep(POLL_S)

    def _check(self, standings: dict[str, Standing], deadline: float, complaint: str, needed: list[str]) -> None:
        """Whether it makes sense to wait on. Raises EmbeddedServerError."""
        for name in needed:
            ended = self.servers[name].ended_by_itself()
            if ended is not None:
                raise EmbeddedServerError(ended)
        if time.monotonic() > deadline:
            states = "; ".join(str(standing) for standing in standings.values())
            tails = "".join(self.servers[name].log_tail() for name in needed)
            raise EmbeddedServerError(f"{complaint} ({states}){tails}")

    # -- faults -----------------------------------------------------------------------------

    def kill(self, name: str) -> None:
        """End a node at once (SIGKILL); it is gone on return."""
        self.servers[name].kill()

    def start_node(self, name: str) -> None:
        """Start a node again on its data and its addresses, and do not wait until it serves: see `serving`."""
        self.servers[name].launch()

    def pause(self, name: str) -> None:
        """The node stands still, and its connections stay open. The others go on without it after the sync limit."""
        self.servers[name].pause()

    def resume(self, name: str) -> None:
        """Undo `pause`."""
        self.servers[name].resume()

    def lag(self, name: str, delay_ms: int) -> None:
        """From now on a follower applies what the leader commits so much later; 0 ends that.

        It logs and acknowledges in time, and its sessions live on (see `live.quorum_lag`). After a change of leader it
        is brought up to date, and lags again. Raises `error`: the node leads, or is not one of `lag_nodes`.
        """
        lag = self._lag_of(name)
        if delay_ms < 0:
            raise ValueError(f"a delay of {delay_ms} ms")
        if delay_ms > 0 and not lag.seen(name).following:
            raise self.error(f"{name} follows no leader now: only followers lag")
        lag.set_delay(name, delay_ms)

    def lag_seen(self, name: str) -> LagSeen:
        """What the proxies of a node have done. Raises `error` as `lag`."""
        return self._lag_of(name).seen(name)

    def _lag_of(self, name: str) -> QuorumLag:
        if self._lag is None or name not in self.lag_nodes:
            raise self.error(f"{name} cannot lag: start the ensemble with lag_nodes=({name!r},)")
        return self._lag

    # -- facts, as futures ------------------------------------------------------------------

    def standings(self) -> Future[dict[str, Standing]]:
        return self.future(self._standings(), "the standings of the ensemble")

    def leader(self, timeout_s: float = START_TIMEOUT_S) -> Future[str]:
        """The leader, as soon as there is one. Fails with EmbeddedServerError."""
        return self.future(self._leader(timeout_s), "a leader of the ensemble")

    def serving(self, name: str, timeout_s: float = START_TIMEOUT_S) -> Future[None]:
        """Done when a node serves. Fails with EmbeddedServerError: its process has ended, or
        the time is over (it does not serve without a majority)."""
        return self.future(self._serving(name, timeout_s), f"{name} to serve")

    async def _standings(self) -> dict[str, Standing]:
        found = await asyncio.gather(*(node.standing() for node in self.servers.values()))
        return {standing.name: standing for standing in found}

    async def _leader(self, timeout_s: float) -> str:
        deadline = time.monotonic() + timeout_s
        while (leader := self._leader_of(standings := await self._standings())) is None:
            self._check(standings, deadline, f"nobody leads after {timeout_s:g} s", [])
            await asyncio.sleep(POLL_S)
        return leader

    async def _serving(self, name: str, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while (standings := await self._standings())[name].mode is None:
            self._check(standings, deadline, f"{name} does not serve after {timeout_s:g} s", [name])
            await asyncio.sleep(POLL_S)

    def future(self, work: Coroutine[Any, Any, T], label: str) -> Future[T]:
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

    def stop_asking(self) -> None:
        """Fail the futures that are still waited for."""
        for task in list(self._asking):
            if not task.get_loop().is_closed():
                task.cancel()

    # -- end --------------------------------------------------------------------------------

    @abstractmethod
    def stop(self) -> None:
        """End every node in order. Harmless when ended."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()
