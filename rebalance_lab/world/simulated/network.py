"""The simulated network between processes, and the faults of its links.

Hosts are named, and each has one process at a time. A host takes connections although its process is paused; when a
process is killed, its connections end in order, as those of a real one do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from rebalance_lab.kernel import Future, Kernel, Process, ProcessState, RandomStream
from rebalance_lab.world.net.codecs import AsObjects
from rebalance_lab.world.net.connections import AcceptedConnection, ClientConnection, Door
from rebalance_lab.world.network import (
    DEFAULT_LIMITS,
    Address,
    CannotListen,
    Codec,
    Connection,
    Frame,
    Limits,
    Listener,
)
from rebalance_lab.world.simulated.link import Link, LinkState, Network
from rebalance_lab.world.simulated.settings import NetworkSettings
from rebalance_lab.world.tcp import RETRY_SYN_US, retried_us

Q = TypeVar("Q")
R = TypeVar("R")

#: The first message of a client, and the answers to it, are the operating systems' own.
_SYN, _WELCOME, _REFUSED = "syn", "welcome", "refused"

#: The first port that a listener without one of its own gets.
_FREE_PORT = 40_000


#: Messages pass as bytes in the trials of one seed in so many.
_BYTES_EVERY = 10


def carries_bytes(seed: int | str) -> bool:
    """Whether messages pass as bytes in the trials of a seed. They have the same history either way; that they do shows
    that the codecs lose nothing."""
    return isinstance(seed, int) and seed % _BYTES_EVERY == 0


class SimulatedNetwork:
    """All hosts, and the links between them. `through_bytes`: messages pass as bytes, by the codecs of those who send
    and receive them; else as they are."""

    def __init__(
        self, kernel: Kernel, settings: NetworkSettings, stream: RandomStream, *, through_bytes: bool = False
    ) -> None:
        self.kernel = kernel
        self.wire = Network(kernel, settings, stream)
        self.through_bytes = through_bytes
        #: Who listens where.
        self.listening: dict[Address, ServerSide] = {}
        self._hosts: dict[str, None] = {}
        #: Client's host and server's host of each link that is open, or withholds something.
        self._links: dict[Link, tuple[str, str]] = {}
        #: (from, to) -> whether what is sent this way is lost, and how much longer it takes.
        self._silent: dict[tuple[str, str], bool] = {}
        self._slow_us: dict[tuple[str, str], int] = {}
        #: Attempts that hang, with the time they began.
        self._hanging: list[tuple[Link, tuple[str, str], int]] = []
        self._next_port = _FREE_PORT

    def port(self, process: Process, host: str, listening: Callable[[Address], object]) -> SimulatedPort:
        """The port `world.network.Network` for `process` on `host`. `listening`: called with each address that it
        listens at."""
        self._hosts[host] = None
        return SimulatedPort(self, process, host, listening)

    # -- faults -----------------------------------------------------------------------------

    def set_link(self, one: str, other: str, *, silent: tuple[bool, bool], slow_us: tuple[int, int] = (0, 0)) -> str:
        """From now what is sent from host `one` to host `other`, and the other way, is lost without an error, or takes
        so much longer. What was lost is sent again when TCP does, as soon as its way is open; new connections hang
        while either way is silent. Returns what was lost and what was slowed since the last call, "" if nothing."""
        ways = ((one, other), (other, one))
        for way, lost, late_us in zip(ways, silent, slow_us, strict=True):
            self._silent[way], self._slow_us[way] = lost, late_us
        again = slowed = 0
        for link, ends in tuple(self._links.items()):
            if ends in ways:
                slowed += link.slowed
                again += self._apply(link, ends)
                if not link.open and not link.withheld:
                    del self._links[link]
        hung = 0 if any(silent) else self._let_in(ways)
        told = (("messages held back", again), ("connections that hung", hung), ("messages slowed", slowed))
        return ", ".join(f"{what}: {count}" for what, count in told if count)

    def _apply(self, link: Link, ends: tuple[str, str]) -> int:
        """Let a link be as its ways are. Returns how many messages are sent again."""
        client, server = ends
        way, back = (client, server), (server, client)
        to_server, to_client = self._silent.get(way, False), self._silent.get(back, False)
        link.withhold(to_server=to_server, to_client=to_client)
        link.slow_us = (self._slow_us.get(way, 0), self._slow_us.get(back, 0))
        link.slowed = 0
        return link.resume(to_server=not to_server, to_client=not to_client)

    def _let_in(self, ways: tuple[tuple[str, str], ...]) -> int:
        """Attempts between these hosts go through when TCP tries again. Returns how many hung."""
        hanging, self._hanging = self._hanging, []
        for link, ends, began_us in hanging:
            if ends in ways:
                again_us = retried_us(began_us, self.kernel.now_us(), RETRY_SYN_US)
                self.kernel.driver.call_at(again_us, partial(self._try, link, ends, began_us))
            else:
                self._hanging.append((link, ends, began_us))
        return len(hanging) - len(self._hanging)

    # -- for the ends -----------------------------------------------------------------------

    def knows(self, host: str) -> bool:
        return host in self._hosts

    def dial(self, link: Link, ends: tuple[str, str]) -> None:
        """A link begins."""
        self._try(link, ends, self.kernel.now_us())

    def _try(self, link: Link, ends: tuple[str, str], began_us: int) -> None:
        client, server = ends
        if self._silent.get((client, server)) or self._silent.get((server, client)):
            self._hanging.append((link, ends, began_us))
        elif link.open:  # it was not given up
            self._links[link] = ends
            self._apply(link, ends)
            link.to_server(_SYN)

    def over(self, link: Link) -> None:
        """A link has ended."""
        if not link.withheld:
            self._links.pop(link, None)

    def free_port(self) -> int:
        self._next_port += 1
        return self._next_port


class SimulatedPort:
    """The port `world.network.Network` for one process."""

    def __init__(
        self, network: SimulatedNetwork, process: Process, host: str, listening: Callable[[Address], object]
    ) -> None:
        self.network = network
        self.process = process
        self.host = host
        #: Ends of open connections, each with what its process's end means for it.
        self.ends: dict[Link, Callable[[], None]] = {}
        self._listening = listening
        self._doors: dict[Address, None] = {}
        process.on_change(self._process_changed)

    def listen(self, codec: Codec[Q, R], *, port: int = 0, limits: Limits = DEFAULT_LIMITS) -> Future[Listener[Q, R]]:
        listening: Future[Listener[Q, R]] = Future(("listening at port", port))
        address = Address(self.host, port or self.network.free_port())
        if address in self.network.listening:
            listening.fail(CannotListen(address, "the port is in use"))
            return listening
        door: Door[Q, R] = Door(address, limits, partial(self._stop, address))
        self.network.listening[address] = ServerSide(self, door, self._codec(codec), limits)
        self._doors[address] = None
        self._listening(address)
        listening.set(door)
        return listening

    def connect(
        self, address: Address, codec: Codec[Q, R], *, timeout_us: int, limits: Limits = DEFAULT_LIMITS
    ) -> Future[Connection[Q, R]]:
        pipe = ClientPipe(self)
        connection = ClientConnection(self.network.kernel, address, self._codec(codec), timeout_us, limits, pipe)
        if not self.network.knows(address.host):
            connection.lost(f"there is no host {address.host}")
            return connection.opened
        server = ServerPipe(self.network, address, self.host)
        pipe.begin(connection, Link(self.network.wire, self.process, pipe, server))
        self.network.dial(pipe.link, (self.host, address.host))
        return connection.opened

    def _codec(self, codec: Codec[Q, R]) -> Codec[Q, R]:
        return codec if self.network.through_bytes else AsObjects()

    def _stop(self, address: Address) -> None:
        self.network.listening.pop(address, None)
        self._doors.pop(address, None)

    def _process_changed(self, state: ProcessState) -> None:
        if state is ProcessState.KILLED:
            for address in tuple(self._doors):
                self._stop(address)
            for end in tuple(self.ends.values()):
                end()
            self.ends.clear()


class ClientPipe:
    """A client's end of a link (`net.connections.Pipe`, `simulated.link.ClientEnd`)."""

    def __init__(self, port: SimulatedPort) -> None:
        self._port = port

    def begin(self, connection: ClientConnection[Any, Any], link: Link) -> None:
        self._connection = connection
        self.link = link
        self._port.ends[link] = self.close

    def arrived(self, link: Link, message: Frame) -> None:
        if message is _WELCOME:
            self._connection.connected()
        elif message is _REFUSED:
            self._over("the connection was refused: nobody listens there")
        elif not isinstance(message, bytes) or self._connection.takes(len(message)):
            self._connection.arrived(message)

    def ended(self, link: Link) -> None:
        broken = link.state is LinkState.BROKEN
        self._over("the connection was reset" if broken else "the server closed the connection")

    def watch_silence(self, link: Link, heard_us: int) -> None:
        """Only a ZooKeeper session pings."""

    def write(self, frame: Frame) -> None:
        self.link.to_server(frame)

    def room(self) -> Future[None]:
        return _ready()

    def read_one(self) -> None:
        """A client reads all the time."""

    def close(self) -> None:
        self.link.leave_as_client()
        self._forget()

    def abort(self) -> None:
        self.link.cut()
        self._forget()

    def _over(self, why: str) -> None:
        self._forget()
        self._connection.lost(why)

    def _forget(self) -> None:
        self._port.ends.pop(self.link, None)
        self._port.network.over(self.link)


@dataclass(frozen=True, slots=True)
class ServerSide:
    """What a listener gives the connections that come to it."""

    port: SimulatedPort
    door: Door[Any, Any]
    codec: Codec[Any, Any]
    limits: Limits


class ServerPipe:
    """A server's end of a link (`net.connections.Pipe`, `simulated.link.ServerEnd`): of the host first, and of the
    process that listens there when the client's first message has come."""

    def __init__(self, network: SimulatedNetwork, address: Address, peer: str) -> None:
        self.name = str(address)
        self._network = network
        self._address = address
        self._peer = peer
        self._side: ServerSide | None = None
        self._frames: deque[Frame] = deque()
        self._wanted = False
        self._why = ""

    def arrived(self, link: Link, message: Frame) -> None:
        if self._side is not None:
            self._side.port.process.deliver(partial(self._frame_came, message))
        elif message is _SYN:
            self._welcome(link)

    def _welcome(self, link: Link) -> None:
        self.link = link
        side = self._network.listening.get(self._address)
        if side is None:
            link.to_client(_REFUSED)
            link.leave_as_server()
            return
        self._side = side
        side.port.ends[link] = self.close
        link.accepted = True
        link.to_client(_WELCOME)
        self._connection = AcceptedConnection(self._network.kernel, self._peer, side.codec, side.limits, self)
        side.port.process.deliver(partial(side.door.came, self._connection))

    def _frame_came(self, frame: Frame) -> None:
        self._frames.append(frame)
        self._pass_on()

    def ended(self, link: Link) -> None:
        if self._side is not None:
            why = "the connection was reset" if link.state is LinkState.BROKEN else "the client closed the connection"
            self._side.port.process.deliver(partial(self._end_came, why))

    def _end_came(self, why: str) -> None:
        self._why = why
        self._forget()
        self._pass_on()
        self._connection.left(why)

    def _pass_on(self) -> None:
        if not self._wanted:
            return
        if self._frames:
            self._wanted = False
            frame = self._frames.popleft()
            if not isinstance(frame, bytes) or self._connection.takes(len(frame)):
                self._connection.arrived(frame)
        elif self._why:
            self._connection.lost(self._why)

    def write(self, frame: Frame) -> None:
        self.link.to_client(frame)

    def room(self) -> Future[None]:
        return _ready()

    def read_one(self) -> None:
        self._wanted = True
        self._pass_on()

    def close(self) -> None:
        self.link.leave_as_server()
        self._forget()

    def abort(self) -> None:
        self.link.cut()
        self._forget()

    def _forget(self) -> None:
        assert self._side is not None, "a link is over once, after its begin"
        self._side.port.ends.pop(self.link, None)
        self._network.over(self.link)


def _ready() -> Future[None]:
    """The simulated network always has room."""
    ready: Future[None] = Future("room in the network")
    ready.set(None)
    return ready
