"""A process as the simulated network sees it: its sessions, and what pause and kill do to them."""

from __future__ import annotations

from rebalance_lab.kernel import Kernel, Process, ProcessState, RandomStream
from rebalance_lab.world.ports import ZooKeeper
from rebalance_lab.world.simulated.link import Link, Network
from rebalance_lab.world.simulated.messages import Connect
from rebalance_lab.world.simulated.server import Server
from rebalance_lab.world.simulated.session import SimulatedSession

#: ClientCnxn.startConnect waits this long at most before each connection but the first.
RECONNECT_WAIT_LIMIT_US = 1_000_000


class Endpoint:
    """One process (`session.Host`). `name`: its host, for reports."""

    def __init__(self, kernel: Kernel, process: Process, name: str, seed: int | str, network: Network, server: Server):
        self.kernel = kernel
        self.process = process
        self.name = name
        self._seed = seed
        self._reconnect_waits: RandomStream | None = None
        self._network = network
        self._server = server
        self._links: dict[SimulatedSession, Link] = {}
        self._silent_since_us: dict[SimulatedSession, int] = {}
        self._held: list[tuple[Link, Connect]] | None = None
        process.on_change(self._process_changed)

    # -- links ------------------------------------------------------------------------------

    def connect(self, session: SimulatedSession, message: Connect) -> Link:
        """Begin a connection. While connections are held the attempt hangs, and may be given up."""
        link = Link(self._network, self.process, session, self._server)
        self._links[session] = link
        if self._held is None:
            link.to_server(message)
        else:
            self._held.append((link, message))
            session.limit_attempt()
        return link

    def reconnect_wait_us(self) -> int:
        """How long to wait before the next connection. Its stream is made when first needed:
        most of 100,000 sessions never lose theirs."""
        if self._reconnect_waits is None:
            self._reconnect_waits = RandomStream(self._seed, self.process.name, "reconnect")
        return self._reconnect_waits.below(RECONNECT_WAIT_LIMIT_US)

    def forget(self, session: SimulatedSession) -> None:
        """The session is over."""
        self._links.pop(session, None)

    def hold(self) -> None:
        if self._held is None:
            self._held = []

    def release(self) -> None:
        held, self._held = self._held or [], None
        for link, message in held:
            link.to_server(message)

    # -- pause and kill ---------------------------------------------------------------------

    def _process_changed(self, state: ProcessState) -> None:
        if state is ProcessState.PAUSED:
            self._paused()
        elif state is ProcessState.RUNNING:
            # After the kernel has handed over the mail that waited: see SimulatedSession.woke.
            self.kernel.driver.call_at(self.kernel.now_us(), self._woke)
        else:
            for link in self._links.values():
                link.leave_as_client()
            self._links.clear()

    def _paused(self) -> None:
        for session, link in self._links.items():
            silent_since_us = self._server.client_silent(link)
            if silent_since_us is not None:
                self._silent_since_us[session] = silent_since_us

    def _woke(self) -> None:
        if self.process.running:
            now_us = self.kernel.now_us()
            for session in tuple(self._links):
                session.woke(self._silent_since_us.pop(session, now_us))
            self._silent_since_us.clear()


class SimulatedFactory:
    """The port `world.ports.ZooKeeperFactory` for one process."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def open(self, connect: str, session_timeout_ms: int) -> ZooKeeper:
        """As the port says. Raises ValueError for a chroot, which is not supported yet."""
        if "/" in connect:
            raise ValueError(f"connect string {connect!r}: leave out the chroot, the simulated server has none yet")
        return SimulatedSession(self._endpoint, session_timeout_ms)
