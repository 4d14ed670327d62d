"""The port `world.network` on TCP, with cuts and slow links of its own."""

from __future__ import annotations

import asyncio
import errno
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from rebalance_lab.kernel import Future, Kernel
from rebalance_lab.kernel.drivers import AsyncioDriver
from rebalance_lab.world.live.pipes import AcceptedPipe, DialedPipe
from rebalance_lab.world.live.reserved_port import HOST
from rebalance_lab.world.live.ways import LinkCounts
from rebalance_lab.world.net.connections import AcceptedConnection, ClientConnection, Door
from rebalance_lab.world.network import (
    DEFAULT_LIMITS,
    Address,
    CannotListen,
    Codec,
    Connection,
    Limits,
    Listener,
)
from rebalance_lab.world.tcp import RETRY_SYN_US, retried_us

Q = TypeVar("Q")
R = TypeVar("R")

_BACKLOG = 1024

#: In a process's environment: the address at which other hosts reach it (`world.containers.nodes` sets it).
ADDRESS_VARIABLE = "REBALANCE_LAB_ADDRESS"

_ALL_INTERFACES = "0.0.0.0"


@dataclass(frozen=True, slots=True)
class LinkState:
    """Of the connections that a process dials to another. `silent_*`: what goes this way is lost without an error;
    `slow_*`: how much longer it takes, in µs."""

    silent_to: bool = False
    silent_from: bool = False
    slow_to_us: int = 0
    slow_from_us: int = 0

    @property
    def cut(self) -> bool:
        """Whether no connection comes about, as each needs both ways."""
        return self.silent_to or self.silent_from


_OPEN = LinkState()


class LiveNetwork:
    """The port `world.network.Network`. `loop` must be the loop of the kernel's AsyncioDriver. `listening`: called with
    each address that the process listens at; `host`: the host part of these, at which others reach this process. On
    loopback it listens there only. Elsewhere it listens at all interfaces, as its own may be gone for a while (a
    container that was cut off). Close it when nothing of the kernel runs any more."""

    def __init__(
        self,
        kernel: Kernel,
        loop: asyncio.AbstractEventLoop,
        listening: Callable[[Address], object],
        *,
        host: str = HOST,
    ) -> None:
        self._kernel = kernel
        self._loop = loop
        self._clock = AsyncioDriver(loop)
        self._listening = listening
        self._host = host
        self._bind = HOST if host == HOST else _ALL_INTERFACES
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._servers: dict[asyncio.Server, None] = {}
        self._accepted: dict[AcceptedPipe, None] = {}
        self._dialed: dict[DialedPipe, None] = {}
        self._links: dict[Address, LinkState] = {}
        self._counts: defaultdict[Address, LinkCounts] = defaultdict(LinkCounts)
        #: Attempts that hang, with the time they began.
        self._hanging: dict[DialedPipe, int] = {}

    # -- the port ---------------------------------------------------------------------------

    def listen(self, codec: Codec[Q, R], *, port: int = 0, limits: Limits = DEFAULT_LIMITS) -> Future[Listener[Q, R]]:
        listening: Future[Listener[Q, R]] = Future(("listening at port", port))
        listening.cause = self._kernel.cause
        task = self._loop.create_task(self._listen(codec, port, limits, listening))
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))
        return listening

    async def _listen(self, codec: Codec[Q, R], port: int, limits: Limits, listening: Future[Listener[Q, R]]) -> None:
        def came(pipe: AcceptedPipe, peer: str) -> None:
            self._accepted[pipe] = None
            pipe.end = connection = AcceptedConnection(self._kernel, peer, codec, limits, pipe)
            door.came(connection)

        def accepted() -> AcceptedPipe:
            return AcceptedPipe(came, lambda pipe: self._accepted.pop(pipe, None))

        try:
            server = await self._loop.create_server(accepted, self._bind, port, backlog=_BACKLOG, start_serving=False)
            address = Address(self._host, server.sockets[0].getsockname()[1])
            door: Door[Q, R] = Door(address, limits, partial(self._stop, server))
            await server.start_serving()
        except OSError as error:
            why = "the port is in use" if error.errno == errno.EADDRINUSE else error.strerror or str(error)
            listening.fail(CannotListen(Address(self._host, port), why))
            return
        self._servers[server] = None
        self._listening(address)
        listening.set(door)

    def _stop(self, server: asyncio.Server) -> None:
        server.close()
        self._servers.pop(server, None)

    def connect(
        self, address: Address, codec: Codec[Q, R], *, timeout_us: int, limits: Limits = DEFAULT_LIMITS
    ) -> Future[Connection[Q, R]]:
        pipe = DialedPipe(self._loop, self._counts[address], self._gone)
        pipe.end = connection = ClientConnection(self._kernel, address, codec, timeout_us, limits, pipe)
        self._dialed[pipe] = None
        link = self._links.get(address, _OPEN)
        _set_ways(pipe, link)
        self._try(pipe, self._clock.now_us())
        return connection.opened

    def close(self) -> None:
        """Break all connections, and stop listening."""
        for task in tuple(self._tasks):
            task.cancel()
        for server in tuple(self._servers):
            self._stop(server)
        for pipe in (*self._accepted, *self._dialed):
            pipe.abort()

    # -- faults -----------------------------------------------------------------------------

    def set_link(self, addresses: Iterable[Address], state: LinkState) -> LinkCounts:
        """From now the connections to these addresses, also new ones, are so. Returns what the state before did."""
        named = dict.fromkeys(addresses)
        for pipe in tuple(self._dialed):
            if pipe.end.address in named:
                if pipe in self._hanging and not state.cut:
                    began_us = self._hanging.pop(pipe)
                    again_us = retried_us(began_us, self._clock.now_us(), RETRY_SYN_US)
                    self._clock.call_at(again_us, partial(self._try, pipe, began_us))
                _set_ways(pipe, state)
        total = LinkCounts()
        for address in named:
            self._links[address] = state
            counts = self._counts[address]
            total.held_bytes += counts.held_bytes
            total.slowed_bytes += counts.slowed_bytes
            total.hung += counts.hung
            counts.held_bytes = counts.slowed_bytes = counts.hung = 0
        return total

    def _try(self, pipe: DialedPipe, began_us: int) -> None:
        if pipe not in self._dialed:  # it was given up
            return
        link = self._links.get(pipe.end.address, _OPEN)
        if link.cut:
            self._hanging[pipe] = began_us
            self._counts[pipe.end.address].hung += 1
        elif link.slow_to_us or link.slow_from_us:  # as TCP's handshake is, which is not dialed through the ways
            self._clock.call_at(self._clock.now_us() + link.slow_to_us + link.slow_from_us, partial(self._dial, pipe))
        else:
            pipe.dial()

    def _dial(self, pipe: DialedPipe) -> None:
        if pipe in self._dialed:
            pipe.dial()

    def _gone(self, pipe: DialedPipe) -> None:
        self._dialed.pop(pipe, None)
        self._hanging.pop(pipe, None)


def _set_ways(pipe: DialedPipe, state: LinkState) -> None:
    pipe.to_server.set(silent=state.silent_to, slow_us=state.slow_to_us)
    pipe.to_client.set(silent=state.silent_from, slow_us=state.slow_from_us)
