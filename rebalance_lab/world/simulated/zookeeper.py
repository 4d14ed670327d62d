"""The simulated ZooKeeper: its servers, its network, and the faults."""

from __future__ import annotations

from collections.abc import Callable

from rebalance_lab.history.events import session_text
from rebalance_lab.history.transactions import Transaction
from rebalance_lab.kernel import Kernel, Process, RandomStream
from rebalance_lab.world.ports import ZooKeeperFactory
from rebalance_lab.world.simulated.endpoint import Endpoint, SimulatedFactory
from rebalance_lab.world.simulated.ensemble import Ensemble
from rebalance_lab.world.simulated.link import Network
from rebalance_lab.world.simulated.quorum import NoSuchServer
from rebalance_lab.world.simulated.sessions import ServerSession
from rebalance_lab.world.simulated.settings import NetworkSettings, ServerSettings

_ACTOR = "zookeeper"

__all__ = ["NoSuchServer", "NoSuchSession", "SimulatedZooKeeper"]


class NoSuchSession(Exception):
    """A fault was aimed at a session that does not live at the server (any more)."""


class SimulatedZooKeeper:
    """A ZooKeeper 3.9 in virtual time, standalone or an ensemble; every choice comes from `seed`.

    `servers`: their names, in the order of their ids. Connect strings name them as hosts (`z1:2181,z2:2181`). Several
    servers are an ensemble, which has already elected its leader.
    `plant`: one of `settings.ServerBug`, or None for no planted bug.
    """

    def __init__(
        self,
        kernel: Kernel,
        seed: int | str,
        *,
        settings: ServerSettings | None = None,
        network: NetworkSettings | None = None,
        plant: str | None = None,
        servers: tuple[str, ...] = ("z1",),
    ) -> None:
        self._kernel = kernel
        self._seed = seed
        stream = RandomStream(seed, _ACTOR, "network")
        self._network = Network(kernel, network or NetworkSettings(), stream)
        self._ensemble = Ensemble(
            kernel,
            settings or ServerSettings(),
            servers,
            RandomStream(seed, _ACTOR, "sessions"),
            RandomStream(seed, _ACTOR, "ensemble"),
            plant,
        )
        self._endpoints: dict[Process, Endpoint] = {}
        #: Every transaction in zxid order: the tap. Refused writes and sessions are among them.
        self.transactions: list[Transaction] = self._ensemble.authority.transactions
        #: Raises `audit.ImpossibleWorld`; for `Simulation.invariants`, and cheap.
        self.check: Callable[[], None] = self._ensemble.authority.audit.check

    def factory(self, process: Process, host: str) -> ZooKeeperFactory:
        """Where `process` opens its sessions. `host` names it in reports."""
        if process not in self._endpoints:
            self._endpoints[process] = Endpoint(
                self._kernel, process, host, self._seed, self._network, self._ensemble.servers
            )
        return SimulatedFactory(self._endpoints[process])

    def on_transaction(self, listener: Callable[[Transaction], None]) -> None:
        """Call `listener` with each transaction when it is logged, before any client learns of it."""
        self._ensemble.authority.listeners.append(listener)

    @property
    def living_sessions(self) -> tuple[int, ...]:
        """Ids of the sessions that live, oldest first."""
        return tuple(self._ensemble.authority.sessions.living)

    @property
    def servers(self) -> tuple[str, ...]:
        """Their names, in the order of their ids."""
        return tuple(self._ensemble.servers)

    @property
    def leader(self) -> str | None:
        """The server that leads (a single one does); None during an election, and without a majority."""
        leader = self._ensemble.quorum.leader
        return None if leader is None else leader.name

    def applied_zxid(self, server: str) -> int:
        """The last zxid that `server` has applied. Raises NoSuchServer."""
        return self._ensemble.server(server).zxid

    def serving(self, session_id: int) -> str | None:
        """The server that the session's client is connected to, as the servers see it. Raises
        NoSuchSession."""
        link = self._session(session_id).link
        return link.server.name if link is not None and link.open else None

    # -- faults: servers --------------------------------------------------------------------

    def lag(self, server: str, delay_us: int) -> None:
        """From now `server` applies what the leader commits with this delay; 0 ends that. Its clients stay connected.
        No effect while `server` itself leads. Raises NoSuchServer, and ValueError unless a majority has no lag."""
        self._ensemble.lag(self._ensemble.server(server), delay_us)

    def kill_server(self, server: str) -> None:
        """Its process dies: connections are reset, and new ones refused. Raises NoSuchServer."""
        self._ensemble.quorum.kill(self._ensemble.server(server))

    def start_server(self, server: str) -> None:
        """Start one that was killed: it serves when it has found the leader and what it missed.
        Raises NoSuchServer unless it is down."""
        self._ensemble.quorum.start(self._ensemble.server(server))

    def pause_server(self, server: str) -> None:
        """Its process stands still; connections stay, and nothing comes from them. After the sync
        limit the others go on without it. Raises NoSuchServer unless it runs."""
        paused = self._ensemble.server(server)
        self._ensemble.pause(paused)
        for endpoint in self._endpoints.values():
            endpoint.server_paused(paused)

    def resume_server(self, server: str) -> None:
        """Undo `pause_server`. Raises NoSuchServer unless it is paused."""
        self._ensemble.quorum.resume(self._ensemble.server(server))

    # -- faults: sessions and connections --------------------------------------------------

    def break_connection(self, session_id: int) -> bool:
        """Reset the session's connection: what is in flight is lost, both ends learn, the client
        connects again. False when it has none now. Raises NoSuchSession."""
        link = self._session(session_id).link
        if link is None or not link.open:
            return False
        link.cut()
        return True

    def lose_next_reply(self, session_id: int, created: str = "") -> None:
        """The next request of the session's client is processed, then its connection breaks before the reply. If the
        session ends first, that happens in the client's next one. `created`: not the next, but the next that creates a
        znode in whose path this occurs, or the next multi that begins with such a create. Raises NoSuchSession."""
        process = self._session(session_id).process
        assert process is not None, "a session begins with a connection"
        self._ensemble.authority.sessions.losing[process] = created

    def loses_next_reply(self, process: Process) -> bool:
        """Whether that has not happened yet to a client of this process."""
        return process in self._ensemble.authority.sessions.losing

    def expire(self, session_id: int) -> None:
        """Close the session on a second connection although its client lives, as `live.takeover` does. Raises
        NoSuchSession."""
        self._ensemble.take_over(self._session(session_id))

    def hold_connections(self, process: Process) -> None:
        """From now no new connection of `process` gets through; attempts hang until they time
        out or are released. Connections that stand are left alone."""
        self._endpoint(process).hold()

    def release_connections(self, process: Process) -> None:
        """Undo `hold_connections`: attempts that still hang go through."""
        self._endpoint(process).release()

    def cut(self, process: Process, *, to_server: bool, to_client: bool) -> None:
        """The network between `process` and all servers loses what is sent these ways, without an error: the client
        gives a connection up when it has heard nothing for two thirds of the session timeout, and the servers expire
        the session. New connections hang, whichever way is cut. Several cuts add up."""
        self._endpoint(process).cut_off(to_server=to_server, to_client=to_client)

    def heal(self, process: Process) -> None:
        """Undo `cut`. As with TCP, what was lost on connections that are still open is sent again, after at most as
        long as the cut lasted; so are connection attempts."""
        self._endpoint(process).heal()

    def _session(self, session_id: int) -> ServerSession:
        session = self._ensemble.authority.sessions.living.get(session_id)
        if session is None:
            raise NoSuchSession(
                f"no session {session_text(session_id)} lives at the simulated servers: it ended before"
            )
        return session

    def _endpoint(self, process: Process) -> Endpoint:
        if process not in self._endpoints:
            raise ValueError(f"process {process.name} has no ZooKeeper factory; call factory() for it first")
        return self._endpoints[process]
