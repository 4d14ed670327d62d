"""Simulated TCP connections: two directions, each in order, with latency, loss and cuts.

The network belongs to no process: what a process sent is under way even if it is paused
or killed then. So messages are the driver's calls, not timers of a process; only what arrives
at a client goes through `Process.deliver`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any, Protocol

from rebalance_lab.kernel import Kernel, Process, RandomStream
from rebalance_lab.kernel.drivers import HeapDriver
from rebalance_lab.world.simulated.settings import NetworkSettings
from rebalance_lab.world.tcp import RETRY_DATA_US, retried_us

_LOSS_BITS = 30

#: What an arrival does with what arrives.
Arrive = Callable[[Any], None]


class ServerEnd(Protocol):
    """`name`: the server's. A ZooKeeper server gets `zk.messages.ToServer`; a process, frames (`world.network`)."""

    name: str

    def arrived(self, link: Link, message: Any) -> None: ...
    def ended(self, link: Link) -> None: ...


class ClientEnd(Protocol):
    """`zk.session.Session`, or the client's end of a connection between processes."""

    def arrived(self, link: Link, message: Any) -> None: ...
    def ended(self, link: Link) -> None: ...
    def watch_silence(self, link: Link, heard_us: int) -> None: ...


class LinkState(Enum):
    OPEN = "open"
    LEFT_BY_CLIENT = "left by client"  # what it sent before still arrives, then its end
    LEFT_BY_SERVER = "left by server"
    BROKEN = "broken"  # reset: what was in flight is lost


#: state -> the states it may change to.
TRANSITIONS: dict[LinkState, frozenset[LinkState]] = {
    LinkState.OPEN: frozenset({LinkState.LEFT_BY_CLIENT, LinkState.LEFT_BY_SERVER, LinkState.BROKEN}),
    LinkState.LEFT_BY_CLIENT: frozenset(),
    LinkState.LEFT_BY_SERVER: frozenset(),
    LinkState.BROKEN: frozenset(),
}


class Network:
    """Delays and losses, drawn from one seeded stream."""

    def __init__(self, kernel: Kernel, settings: NetworkSettings, stream: RandomStream) -> None:
        assert isinstance(kernel.driver, HeapDriver), "a simulated network runs on virtual time"
        low, high = settings.latency_us
        self.now_us = kernel.now_us
        self._driver = kernel.driver
        self.lossy = settings.loss > 0
        self._low_us = low
        self._span_us = high - low + 1
        self._loss_below = int(settings.loss * (1 << _LOSS_BITS))
        self._below = stream.below
        self._bits = stream.bits

    def send(self, arrive: Arrive, message: Any, earliest_us: int, sent_us: int = 0) -> int:
        """Send a message now, or at `sent_us`; when it arrives, which is not before `earliest_us`."""
        driver = self._driver
        now_us = driver.time_us
        due_us = (sent_us if sent_us > now_us else now_us) + self._low_us + self._below(self._span_us)
        due_us = max(due_us, earliest_us)
        driver.post(due_us, arrive, message)
        return due_us

    def loses(self) -> bool:
        return self._bits(_LOSS_BITS) < self._loss_below


class Withheld:
    """What one direction of a cut connection has lost so far; TCP will send it again."""

    __slots__ = ("arrivals", "since_us")

    def __init__(self) -> None:
        self.since_us = 0
        self.arrivals: list[tuple[Arrive, Any]] = []

    def add(self, now_us: int, arrive: Arrive, message: Any) -> None:
        if not self.arrivals:
            self.since_us = now_us
        self.arrivals.append((arrive, message))


class Link:
    """One connection between a client in `process` and a server. `open`: as `state` says.

    `accepted`: the server's operating system took the connection, whatever the server does with it. `sent_us`: the
    simulated client pings whether or not it has sent something else. `slow_us`: how much longer a message takes, to the
    server and to the client; `slowed`: how many took longer.
    """

    sent_us = 0

    __slots__ = (
        "_client",
        "_client_due_us",
        "_client_misses",
        "_network",
        "_server_due_us",
        "_server_misses",
        "accepted",
        "open",
        "process",
        "server",
        "slow_us",
        "slowed",
        "state",
    )

    def __init__(self, network: Network, process: Process, client: ClientEnd, server: ServerEnd) -> None:
        self.process = process
        self.server = server
        self.state = LinkState.OPEN
        self.open = True
        self.accepted = False
        self._network = network
        self._client = client
        self._client_due_us = 0
        self._server_due_us = 0
        self._client_misses: Withheld | None = None
        self._server_misses: Withheld | None = None
        self.slow_us = (0, 0)
        self.slowed = 0

    @property
    def reaches_server(self) -> bool:
        """What the client sends arrives, as far as the network is concerned."""
        return self._server_misses is None

    def heard_us(self, now_us: int) -> int:
        """When the client last got something by this connection, or will get what is on its way."""
        return min(self._client_due_us, now_us)

    def doubt(self) -> None:
        """The server is slow to answer: the client, which was well until now, notices silence."""
        self._client.watch_silence(self, self._network.now_us())

    # -- sending ----------------------------------------------------------------------------

    def to_server(self, message: object) -> None:
        if self.open:
            if self._network.lossy and self._network.loses():
                self.cut()
            else:
                self._post_to_server(self._at_server, message)

    def to_client(self, message: object) -> None:
        if self.open:
            if self._network.lossy and self._network.loses():
                self.cut()
            else:
                self._post_to_client(self._at_client, message)

    def _post_to_server(self, arrive: Arrive, message: Any) -> None:
        if self._server_misses is not None:
            self._server_misses.add(self._network.now_us(), arrive, message)
        else:
            sent_us = self._later_us(self.slow_us[0])
            self._server_due_us = self._network.send(arrive, message, self._server_due_us, sent_us)

    def _post_to_client(self, arrive: Arrive, message: Any) -> None:
        if self._client_misses is not None:
            self._client_misses.add(self._network.now_us(), arrive, message)
        else:
            sent_us = self._later_us(self.slow_us[1])
            self._client_due_us = self._network.send(arrive, message, self._client_due_us, sent_us)

    def _later_us(self, slow_us: int) -> int:
        """When a message counts as sent; 0: now."""
        if not slow_us:
            return 0
        self.slowed += 1
        return self._network.now_us() + slow_us

    # -- arriving ---------------------------------------------------------------------------

    def _at_server(self, message: object) -> None:
        if self.open or self.state is LinkState.LEFT_BY_CLIENT:
            self.server.arrived(self, message)

    def _at_client(self, message: object) -> None:
        if self.open or self.state is LinkState.LEFT_BY_SERVER:
            if self.process.running:
                self._client.arrived(self, message)
            else:  # from here it lies in the socket's buffer: what breaks later does not take it away
                self.process.deliver(partial(self._client.arrived, self, message))

    def _end_at_server(self, _nothing: None) -> None:
        self.server.ended(self)

    def _end_at_client(self, _nothing: None) -> None:
        self.process.deliver(partial(self._client.ended, self))

    # -- cuts -------------------------------------------------------------------------------

    def withhold(self, *, to_server: bool, to_client: bool) -> None:
        """From now what is sent these ways is lost without an error; TCP keeps it to send it again."""
        if to_server and self._server_misses is None:
            self._server_misses = Withheld()
        if to_client and self._client_misses is None:
            self._client_misses = Withheld()

    @property
    def withheld(self) -> bool:
        """Whether what is sent some way does not arrive now."""
        return self._server_misses is not None or self._client_misses is not None

    def resume(self, *, to_server: bool = True, to_client: bool = True) -> int:
        """What was withheld these ways arrives when TCP tries again, in order, and all that follows it. Returns how
        many messages that were."""
        count = 0
        if to_server and self._server_misses is not None:
            at_server, self._server_misses = self._server_misses, None
            self._server_due_us = self._send_again(at_server, self._server_due_us)
            count += len(at_server.arrivals)
        if to_client and self._client_misses is not None:
            at_client, self._client_misses = self._client_misses, None
            self._client_due_us = self._send_again(at_client, self._client_due_us)
            count += len(at_client.arrivals)
        return count

    def _send_again(self, misses: Withheld, due_us: int) -> int:
        """When the last of it arrives; `due_us`: when the last before it did."""
        if misses.arrivals:
            again_us = retried_us(misses.since_us, self._network.now_us(), RETRY_DATA_US)
            for arrive, message in misses.arrivals:
                due_us = self._network.send(arrive, message, due_us, again_us)
        return due_us

    # -- ending -----------------------------------------------------------------------------

    def leave_as_client(self) -> None:
        """The client closes, or its process dies. The server learns after what was sent before."""
        if self.open:
            self._change(LinkState.LEFT_BY_CLIENT)
            self._post_to_server(self._end_at_server, None)

    def leave_as_server(self) -> None:
        """The server closes. The client learns after what was sent before."""
        if self.open:
            self._change(LinkState.LEFT_BY_SERVER)
            self._post_to_client(self._end_at_client, None)

    def cut(self) -> None:
        """Reset the connection: messages in flight are lost, and both ends learn of it."""
        if self.open:
            self._change(LinkState.BROKEN)
            self._post_to_server(self._end_at_server, None)
            self._post_to_client(self._end_at_client, None)

    def _change(self, new: LinkState) -> None:
        assert new in TRANSITIONS[self.state], f"a link {self.state.value} cannot become {new.value}"
        self.state = new
        self.open = False  # each change ends it
