"""The ensemble of the fixtures: as child processes, or in containers, under one set of names."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rebalance_lab.trials.plan import one_of
from rebalance_lab.world.live.ensemble import EmbeddedEnsemble
from rebalance_lab.world.live.java import EmbeddedServerError
from rebalance_lab.world.live.takeover import Credentials, end_session
from rebalance_lab.world.process.states import RunState
from rebalance_lab.world.zk.connect_string import parse

if TYPE_CHECKING:
    from rebalance_lab.world.containers.ensemble import ContainerEnsemble

T = TypeVar("T")

#: Where servers run: child processes of the tests, or docker.
EMBEDDED, DOCKER = "embedded", "docker"
WORLDS = (EMBEDDED, DOCKER)

LIMIT_S = 90.0
POLL_S = 0.05
_SESSION_MS = 10_000


def wait_until(ask: Callable[[], T | None], what: str, limit_s: float = LIMIT_S) -> T:
    """Call `ask` repeatedly until its answer is neither None nor false, and return that. Raises TimeoutError, whose
    message has `what`."""
    give_up = time.monotonic() + limit_s
    while not (answer := ask()):
        if time.monotonic() > give_up:
            raise TimeoutError(f"{what}: not within {limit_s:g} s")
        time.sleep(POLL_S)
    return answer


class ZooKeeperEnsemble:
    """What the fixture `zookeeper_ensemble` gives. Servers are named z1, z2, …; methods that take
    the name of one raise PlanError for another name."""

    def __init__(self, world: str, ensemble: EmbeddedEnsemble | ContainerEnsemble, tick_ms: int) -> None:
        self.world = world
        self.tick_ms = tick_ms
        self._ensemble = ensemble

    @property
    def connect_string(self) -> str:
        """Of all servers: `host:port,host:port,…`."""
        return self._ensemble.connect_string

    @property
    def servers(self) -> tuple[str, ...]:
        return tuple(self._ensemble.servers)

    def connect_to(self, server: str) -> str:
        """The connect string of one server."""
        return self._ensemble.connect_to(self.named(server))

    def leader(self) -> str:
        """The leader; waits until there is one. Raises TimeoutError."""
        return wait_until(self._ensemble.leader_now, "a leader")

    def followers(self) -> tuple[str, ...]:
        """The others that serve: not those that are killed, paused or cut off."""
        leader = self.leader()
        return tuple(name for name in self.servers if name != leader and self.serves(name))

    def serves(self, server: str) -> bool:
        """Whether a server answers, and belongs to a majority."""
        return self._ensemble.servers[self.named(server)].standing_now().mode is not None

    def named(self, server: str) -> str:
        """The name itself. Raises PlanError if no server has it."""
        one_of("server", server, self.servers)
        return server

    def __repr__(self) -> str:
        return f"<ZooKeeperEnsemble {self.world}: {self.connect_string}>"


class ZooKeeperFaults:
    """The value of the fixture `zookeeper_faults`. Each method returns when its fault has taken effect. Faults that a
    test leaves behind are healed when it ends. Raises PlanError if there is no server of that name."""

    def __init__(self, ensemble: ZooKeeperEnsemble) -> None:
        self._of = ensemble
        self._ensemble: Any = ensemble._ensemble
        self._named = ensemble.named

    def kill(self, server: str) -> None:
        """SIGKILL. Its clients go to other servers, if their connect string names some."""
        self._ensemble.kill(self._named(server))

    def start(self, server: str) -> None:
        """Start one that was killed; it serves on return. Raises TimeoutError."""
        self._ensemble.start_node(self._named(server))
        wait_until(lambda: self._of.serves(server), f"{server} to serve")

    def pause(self, server: str) -> None:
        """It stands still, and its connections stand: a long garbage collection."""
        self._ensemble.pause(self._named(server))

    def resume(self, server: str) -> None:
        self._ensemble.resume(self._named(server))

    def lag(self, server: str, delay_ms: int) -> None:
        """A follower shows what is so much older, to sessions that live on; 0 ends it."""
        self._ensemble.lag(self._named(server), delay_ms)

    def partition(self, server: str) -> None:
        """Cut a server off from its peers: it stops serving when it has noticed. Docker only;
        raises EmbeddedServerError."""
        self._check_cut(server)
        self._ensemble.partition(server)
        wait_until(lambda: not self._of.serves(server), f"{server} to notice")

    def rejoin(self, server: str) -> None:
        """Undo `partition`; it serves on return. Docker only; raises EmbeddedServerError, and
        TimeoutError."""
        self._check_cut(server)
        self._ensemble.rejoin(server)
        wait_until(lambda: self._of.serves(server), f"{server} to serve")

    def _check_cut(self, server: str) -> None:
        self._named(server)
        if self._of.world != DOCKER:
            raise EmbeddedServerError("only docker cuts servers off from each other: --zookeeper-world docker")

    def expire(self, session_id: int, password: bytes) -> None:
        """End a session while its client lives and is connected (kazoo: `client.client_id`).
        Raises TakeoverFailed: it had ended before."""
        server = parse(self._of.connect_to(self._of.leader())).servers[0]
        end_session(Credentials(server.host, server.port, session_id, password, _SESSION_MS))

    def heal(self) -> None:
        """Undo all of it, and wait until every server serves. Raises EmbeddedServerError."""
        if self._of.world == DOCKER:
            self._ensemble.make_whole()
            return
        for name, node in self._ensemble.servers.items():
            if node.state is RunState.STOPPED:
                self._ensemble.resume(name)
            elif node.state is RunState.GONE:
                self._ensemble.start_node(name)
            if name in self._ensemble.lag_nodes:
                self._ensemble.lag(name, 0)
        self._ensemble.wait_until_ready()


@contextmanager
def running(world: str, folder: Path, nodes: int, tick_ms: int) -> Iterator[ZooKeeperEnsemble]:
    """An ensemble for as long as the context lasts. Any server may be made to lag, of several."""
    lag_nodes = tuple(f"z{number}" for number in range(1, nodes + 1)) if nodes > 1 else ()
    if world == EMBEDDED:
        with EmbeddedEnsemble.start(folder, nodes, tick_ms, lag_nodes) as embedded:
            yield ZooKeeperEnsemble(world, embedded, tick_ms)
        return
    try:
        from rebalance_lab.world.containers.engine import Engine  # noqa: PLC0415 (not installed everywhere)
        from rebalance_lab.world.containers.ensemble import ContainerEnsemble  # noqa: PLC0415
    except ModuleNotFoundError as missing:
        raise EmbeddedServerError(
            f"servers in containers need {missing.name}: install the lab with its extra `testing` (docs/testing.md)"
        ) from missing
    with Engine() as engine, ContainerEnsemble.start(engine, folder, nodes, tick_ms, lag_nodes) as contained:
        yield ZooKeeperEnsemble(world, contained, tick_ms)
