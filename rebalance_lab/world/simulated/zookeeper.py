"""The simulated ZooKeeper: server, network, and the faults' handles, in one object."""

from __future__ import annotations

from collections.abc import Callable

from rebalance_lab.history.events import session_text
from rebalance_lab.history.transactions import Transaction
from rebalance_lab.kernel import Kernel, Process, RandomStream
from rebalance_lab.world.ports import ZooKeeperFactory
from rebalance_lab.world.simulated.endpoint import Endpoint, SimulatedFactory
from rebalance_lab.world.simulated.link import Network
from rebalance_lab.world.simulated.server import Server
from rebalance_lab.world.simulated.sessions import ServerSession
from rebalance_lab.world.simulated.settings import NetworkSettings, ServerSettings

_ACTOR = "zookeeper"


class NoSuchSession(Exception):
    """A fault was aimed at a session that does not live at the server (any more)."""


class SimulatedZooKeeper:
    """A standalone ZooKeeper 3.9 in virtual time; every choice comes from `seed`.

    `plant`: one of `server.PLANTS`, or None in earnest.
    """

    def __init__(
        self,
        kernel: Kernel,
        seed: int | str,
        *,
        settings: ServerSettings | None = None,
        network: NetworkSettings | None = None,
        plant: str | None = None,
    ) -> None:
        self._kernel = kernel
        self._seed = seed
        stream = RandomStream(seed, _ACTOR, "network")
        self._network = Network(kernel, network or NetworkSettings(), stream)
        self._server = Server(kernel, settings or ServerSettings(), RandomStream(seed, _ACTOR, "sessions"), plant)
        self._endpoints: dict[Process, Endpoint] = {}
        #: Every transaction in zxid order: the tap. Refused writes and sessions are among them.
        self.transactions: list[Transaction] = self._server.authority.transactions
        #: Raises `audit.ImpossibleWorld`; for `Simulation.invariants`, and cheap.
        self.check: Callable[[], None] = self._server.authority.audit.check

    def factory(self, process: Process, host: str) -> ZooKeeperFactory:
        """Where `process` opens its sessions. `host` names it in reports."""
        if process not in self._endpoints:
            self._endpoints[process] = Endpoint(self._kernel, process, host, self._seed, self._network, self._server)
        return SimulatedFactory(self._endpoints[process])

    def on_transaction(self, listener: Callable[[Transaction], None]) -> None:
        """Tell `listener` each transaction when it is logged, before anyone learns of it."""
        self._server.authority.listeners.append(listener)

    @property
    def living_sessions(self) -> tuple[int, ...]:
        """Ids of the sessions the server holds, oldest first."""
        return tuple(self._server.sessions.living)

    # -- faults -----------------------------------------------------------------------------

    def break_connection(self, session_id: int) -> bool:
        """Reset the session's connection: what is in flight is lost, both ends learn, the client
        connects again. False when it has none now. Raises NoSuchSession."""
        link = self._session(session_id).link
        if link is None or not link.open:
            return False
        link.cut()
        return True

    def lose_next_reply(self, session_id: int) -> None:
        """The session's next request is processed, then its connection breaks before the reply.
        Raises NoSuchSession."""
        self._session(session_id).loses_next_reply = True

    def expire(self, session_id: int) -> None:
        """The server closes the session now, though its client lives. Raises NoSuchSession."""
        self._server.expire(self._session(session_id))

    def hold_connections(self, process: Process) -> None:
        """From now no new connection of `process` gets through; attempts hang until they time
        out or are released. Connections that stand are left alone."""
        self._endpoint(process).hold()

    def release_connections(self, process: Process) -> None:
        """Undo `hold_connections`: attempts that still hang go through."""
        self._endpoint(process).release()

    def _session(self, session_id: int) -> ServerSession:
        session = self._server.sessions.living.get(session_id)
        if session is None:
            raise NoSuchSession(f"no session {session_text(session_id)} lives at the simulated server: it ended before")
        return session

    def _endpoint(self, process: Process) -> Endpoint:
        if process not in self._endpoints:
            raise ValueError(f"process {process.name} has no ZooKeeper factory; call factory() for it first")
        return self._endpoints[process]
