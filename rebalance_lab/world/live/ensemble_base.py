"""What can be asked of an ensemble of real ZooKeeper servers, wherever they run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from rebalance_lab.kernel import Future
from rebalance_lab.world.live.ensemble_node import Standing
from rebalance_lab.world.live.java import EmbeddedServerError
from rebalance_lab.world.live.server_process import START_TIMEOUT_S

T = TypeVar("T")

POLL_S = 0.02


class Node(Protocol):
    """One server of an ensemble; it stays the same when it is killed and started again."""

    name: str

    @property
    def connect_string(self) -> str: ...
    @property
    def transaction_dir(self) -> Path:
        """What a `TransactionLog` follows."""
        ...

    def standing_now(self) -> Standing:
        """Asks the node, and waits for its answer (two seconds at most)."""
        ...

    async def standing(self) -> Standing:
        """The same without blocking the loop."""
        ...

    def ended_by_itself(self) -> str | None:
        """Why nobody needs to wait for it any more: it has ended, with its last words."""
        ...

    def last_words(self) -> str:
        """The last lines of its log, for the end of an error's message."""
        ...


N = TypeVar("N", bound=Node)


class Ensemble(Generic[N]):
    """Nodes z1, z2, …. Methods without a future may wait for an answer of each node; those that
    give a kernel's future need the live kernel's loop to be running, which it is for every task of it.
    """

    def __init__(self, nodes: dict[str, N]) -> None:
        self.servers = nodes
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
            time.sleep(POLL_S)

    def _check(self, standings: dict[str, Standing], deadline: float, complaint: str, needed: list[str]) -> None:
        """Whether it makes sense to wait on. Raises EmbeddedServerError."""
        for name in needed:
            ended = self.servers[name].ended_by_itself()
            if ended is not None:
                raise EmbeddedServerError(ended)
        if time.monotonic() > deadline:
            states = "; ".join(str(standing) for standing in standings.values())
            tails = "".join(self.servers[name].last_words() for name in needed)
            raise EmbeddedServerError(f"{complaint} ({states}){tails}")

    # -- facts, as futures ------------------------------------------------------------------

    def standings(self) -> Future[dict[str, Standing]]:
        return self.future(self._standings(), "the standings of the ensemble")

    def leader(self, timeout_s: float = START_TIMEOUT_S) -> Future[str]:
        """Who leads a majority, once somebody does. Fails with EmbeddedServerError."""
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
