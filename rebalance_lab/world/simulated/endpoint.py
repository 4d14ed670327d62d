"""A process as the simulated network sees it: its sessions, and what pause, kill and cuts do to them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rebalance_lab.kernel import Kernel, Process, ProcessState, RandomStream
from rebalance_lab.world.ports import ReadOperation, ZooKeeper
from rebalance_lab.world.simulated.link import Link, Network, ServerEnd
from rebalance_lab.world.simulated.server import Server
from rebalance_lab.world.simulated.session import SimulatedSession
from rebalance_lab.world.simulated.settings import SIMULATED_HOST
from rebalance_lab.world.tcp import RETRY_SYN_US, retried_us
from rebalance_lab.world.zk.codec import REQUEST_LIMIT_BYTES, request_bytes
from rebalance_lab.world.zk.connect_string import parse
from rebalance_lab.world.zk.messages import Connect
from rebalance_lab.world.zk.server_list import ServerList
from rebalance_lab.world.zk.session import Session


class Endpoint:
    """One process (`zk.transport.Transport`). `name`: its host, for reports; `servers`: all there are."""

    request_limit_bytes = REQUEST_LIMIT_BYTES
    request_bytes = staticmethod(request_bytes)

    __slots__ = (
        "_cut_links",
        "_cut_to_client",
        "_cut_to_server",
        "_heard_us",
        "_held",
        "_holding",
        "_links",
        "_network",
        "_orders",
        "_seed",
        "_servers",
        "_waits",
        "kernel",
        "name",
        "process",
    )

    def __init__(
        self, kernel: Kernel, process: Process, name: str, seed: int | str, network: Network, servers: dict[str, Server]
    ) -> None:
        self.kernel = kernel
        self.process = process
        self.name = name
        self._seed = seed
        self._waits: RandomStream | None = None
        self._orders: RandomStream | None = None
        self._network = network
        self._servers = servers
        self._links: dict[SimulatedSession, Link] = {}
        #: When each session last heard something, while the process is paused.
        self._heard_us: dict[SimulatedSession, int] = {}
        self._holding = False
        self._cut_to_server = False
        self._cut_to_client = False
        self._cut_links: list[Link] = []
        #: Attempts that hang, with the time they began.
        self._held: list[tuple[SimulatedSession, Link, Connect, int]] = []
        process.on_change(self._process_changed)

    # -- links ------------------------------------------------------------------------------

    def server_list(self, names: tuple[str, ...]) -> ServerList[ServerEnd]:
        """The servers of these names, in the order a session tries them. Raises ValueError for one
        that does not exist."""
        unknown = [name for name in names if name not in self._servers and not self._alone(name)]
        if unknown:
            known = ", ".join(self._servers)
            raise ValueError(f"connect string names {unknown[0]}: the simulated servers are {known}")
        found: list[ServerEnd] = [self._servers[name if name in self._servers else self._only] for name in names]
        if len(found) > 1:
            if self._orders is None:
                self._orders = RandomStream(self._seed, self.process.name, "servers")
            self._orders.shuffle(found)
        return ServerList(tuple(found), self._wait_us)

    @property
    def _only(self) -> str:
        return next(iter(self._servers))

    def _alone(self, name: str) -> bool:
        return name == SIMULATED_HOST and len(self._servers) == 1

    def connect(self, session: Session[ServerEnd], server: ServerEnd, message: Connect) -> Link:
        """Begin a connection. While connections are held the attempt hangs, and may be given up."""
        assert isinstance(session, SimulatedSession)
        link = Link(self._network, self.process, session, server)
        self._links[session] = link
        if self._holding or self.cut:
            self._held.append((session, link, message, self.kernel.now_us()))
            session.limit_attempt()
        else:
            if len(self._servers) > 1 or self._servers[server.name].paused:
                session.limit_attempt()
            link.to_server(message)
        return link

    def _wait_us(self, limit_us: int) -> int:
        """A random wait before a connection. The stream is made when first needed: most of 100,000
        sessions never lose theirs."""
        if self._waits is None:
            self._waits = RandomStream(self._seed, self.process.name, "reconnect")
        return self._waits.below(limit_us)

    def in_requests(self, reads: Sequence[ReadOperation], _prefix: str) -> tuple[Sequence[ReadOperation]]:
        """One request, however many reads; a real session sends several (`zk.codec.in_requests`)."""
        return (reads,)

    def forget(self, session: Session[ServerEnd]) -> None:
        """The session is over."""
        assert isinstance(session, SimulatedSession)
        self._links.pop(session, None)

    # -- trouble ----------------------------------------------------------------------------

    def hold(self) -> None:
        """New connections hang from now."""
        self._holding = True

    def release(self) -> None:
        """Those that hang go through, unless the process is cut off."""
        self._holding = False
        if not self.cut:
            held, self._held = self._held, []
            for _, link, message, _ in held:
                link.to_server(message)

    @property
    def cut(self) -> bool:
        """Whether messages between this process and the servers are lost."""
        return self._cut_to_server or self._cut_to_client

    def cut_off(self, *, to_server: bool, to_client: bool) -> None:
        """From now what is sent these ways is lost without an error. New connections hang, because each needs both
        ways."""
        self._cut_to_server |= to_server
        self._cut_to_client |= to_client
        for session, link in tuple(self._links.items()):
            if link.open:
                link.withhold(to_server=to_server, to_client=to_client)
                self._cut_links.append(link)
                server = self._servers[link.server.name]
                heard_us = server.client_silent(link) if to_server else server.pinged_us(link)
                session.watch_silence(link, self.kernel.now_us() if heard_us is None else heard_us)

    def heal(self) -> None:
        """Undo `cut_off`: what was lost on connections that are still open is sent again when TCP's timers are due."""
        self._cut_to_server = self._cut_to_client = False
        links, self._cut_links = self._cut_links, []
        for link in links:
            link.resume()
        if not self._holding:
            held, self._held = self._held, []
            now_us = self.kernel.now_us()
            for session, link, message, began_us in held:
                again_us = retried_us(began_us, now_us, RETRY_SYN_US)
                self.kernel.driver.call_at(again_us, partial(self._try_again, session, link, message, began_us))

    def _try_again(self, session: SimulatedSession, link: Link, message: Connect, began_us: int) -> None:
        if self._holding or self.cut:
            self._held.append((session, link, message, began_us))
        else:
            self.process.deliver(partial(session.opened, link))
            link.to_server(message)

    def server_paused(self, server: Server) -> None:
        """From now the sessions that are connected to it, or about to be, hear nothing."""
        for session, link in tuple(self._links.items()):
            if link.server is server and link.open:
                heard_us = server.client_silent(link)
                session.watch_silence(link, self.kernel.now_us() if heard_us is None else heard_us)

    # -- pause and kill ---------------------------------------------------------------------

    def _process_changed(self, state: ProcessState) -> None:
        if state is ProcessState.PAUSED:
            self._paused()
        elif state is ProcessState.RUNNING:  # the mail that waited is delivered after this
            self.kernel.stimulated(None, self._woke)
            self.kernel.driver.call_at(self.kernel.now_us(), self._ping)
        else:
            for link in self._links.values():
                link.leave_as_client()
            self._links.clear()

    def _paused(self) -> None:
        for session, link in self._links.items():
            heard_us = self._servers[link.server.name].client_silent(link)
            self._heard_us[session] = session.heard_us(heard_us)

    def _woke(self) -> None:
        heard_us, self._heard_us = self._heard_us, {}
        for session, at_us in heard_us.items():
            session.woke(at_us)

    def _ping(self) -> None:
        if self.process.running:
            for session in self._links:
                session.ping()


class SimulatedFactory:
    """The port `world.ports.ZooKeeperFactory` for one process."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def open(self, connect: str, session_timeout_ms: int) -> ZooKeeper:
        """As the port says. Raises BadConnectString, and ValueError for a server that does not
        exist and for a timeout that is not positive."""
        if session_timeout_ms <= 0:
            raise ValueError(f"a session timeout of {session_timeout_ms} ms: give a positive one")
        where = parse(connect)
        server_list = self._endpoint.server_list(tuple([server.host for server in where.servers]))
        return SimulatedSession(self._endpoint, server_list, where.chroot, session_timeout_ms)
