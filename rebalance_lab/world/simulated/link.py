"""Simulated TCP connections: two directions, each in order, with latency and loss.

The network belongs to no process: what a process sent is under way even if it is paused
or killed then. So messages are the driver's calls, not timers of a process; only what arrives
at a client goes through `Process.deliver`.
"""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import Protocol

from rebalance_lab.kernel import Kernel, Process, RandomStream
from rebalance_lab.world.simulated.messages import ToClient, ToServer
from rebalance_lab.world.simulated.settings import NetworkSettings

_LOSS_BITS = 30


class ServerEnd(Protocol):
    def arrived(self, link: Link, message: ToServer) -> None: ...
    def ended(self, link: Link) -> None: ...


class ClientEnd(Protocol):
    def arrived(self, link: Link, message: ToClient) -> None: ...
    def ended(self, link: Link) -> None: ...


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
        low, high = settings.latency_us
        self.now_us = kernel.now_us
        self.call_at = kernel.driver.call_at
        self.lossy = settings.loss > 0
        self._low_us = low
        self._span_us = high - low + 1
        self._loss_below = int(settings.loss * (1 << _LOSS_BITS))
        self._stream = stream

    def delay_us(self) -> int:
        return self._low_us + self._stream.below(self._span_us)

    def loses(self) -> bool:
        return self._stream.bits(_LOSS_BITS) < self._loss_below


class Link:
    """One connection between a client in `process` and the server.

    `mail_waited`: something arrived while the process was paused, and was read at resume.
    """

    __slots__ = (
        "_client",
        "_client_due_us",
        "_network",
        "_server",
        "_server_due_us",
        "mail_waited",
        "process",
        "state",
    )

    def __init__(self, network: Network, process: Process, client: ClientEnd, server: ServerEnd) -> None:
        self.process = process
        self.state = LinkState.OPEN
        self.mail_waited = False
        self._network = network
        self._client = client
        self._server = server
        self._client_due_us = 0
        self._server_due_us = 0

    @property
    def open(self) -> bool:
        return self.state is LinkState.OPEN

    # -- sending ----------------------------------------------------------------------------

    def to_server(self, message: ToServer) -> None:
        if self.state is not LinkState.OPEN:
            return
        if self._network.lossy and self._network.loses():
            self.cut()
            return
        self._network.call_at(self._next_at_server_us(), partial(self._at_server, message))

    def to_client(self, message: ToClient) -> None:
        if self.state is not LinkState.OPEN:
            return
        if self._network.lossy and self._network.loses():
            self.cut()
            return
        self._network.call_at(self._next_at_client_us(), partial(self._at_client, message))

    def _next_at_server_us(self) -> int:
        due_us = max(self._network.now_us() + self._network.delay_us(), self._server_due_us)
        self._server_due_us = due_us
        return due_us

    def _next_at_client_us(self) -> int:
        due_us = max(self._network.now_us() + self._network.delay_us(), self._client_due_us)
        self._client_due_us = due_us
        return due_us

    # -- arriving ---------------------------------------------------------------------------

    def _at_server(self, message: ToServer) -> None:
        if self.state is LinkState.OPEN or self.state is LinkState.LEFT_BY_CLIENT:
            self._server.arrived(self, message)

    def _at_client(self, message: ToClient) -> None:
        if self.state is LinkState.OPEN or self.state is LinkState.LEFT_BY_SERVER:
            if self.process.running:
                self._client.arrived(self, message)
            else:  # from here it lies in the socket's buffer: what breaks later does not take it away
                self.mail_waited = True
                self.process.deliver(partial(self._client.arrived, self, message))

    def _end_at_server(self) -> None:
        self._server.ended(self)

    def _end_at_client(self) -> None:
        self.process.deliver(partial(self._client.ended, self))

    # -- ending -----------------------------------------------------------------------------

    def leave_as_client(self) -> None:
        """The client closes, or its process dies. The server learns after what was sent before."""
        if self.open:
            self._change(LinkState.LEFT_BY_CLIENT)
            self._network.call_at(self._next_at_server_us(), self._end_at_server)

    def leave_as_server(self) -> None:
        """The server closes. The client learns after what was sent before."""
        if self.open:
            self._change(LinkState.LEFT_BY_SERVER)
            self._network.call_at(self._next_at_client_us(), self._end_at_client)

    def cut(self) -> None:
        """Reset: all in flight is lost, both ends learn."""
        if self.open:
            self._change(LinkState.BROKEN)
            self._network.call_at(self._next_at_server_us(), self._end_at_server)
            self._network.call_at(self._next_at_client_us(), self._end_at_client)

    def _change(self, new: LinkState) -> None:
        assert new in TRANSITIONS[self.state], f"a link {self.state.value} cannot become {new.value}"
        self.state = new
