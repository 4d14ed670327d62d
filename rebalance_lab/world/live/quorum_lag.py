"""A follower that lags, made by a proxy between it and its leader, which needs no root.

The configuration of a node that may lag names proxies here instead of the other nodes' quorum ports. Of what a leader
sends, a proxy delays the commits, and the answers to sync, which are ordered with them. Proposals pass, so the follower
logs and acknowledges in time. Pings pass, and so do the answers that let a session move to the follower, so its
sessions live on, whatever the delay. Nothing is delayed while a follower is being brought up to date.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from rebalance_lab.world.live.quorum_packets import Packet, PacketSplitter, PacketType, QuorumProtocolError
from rebalance_lab.world.live.reserved_port import HOST

T = TypeVar("T")

_READ_BYTES = 1 << 16
_ANSWER_TIMEOUT_S = 10.0

#: A node that was elected opens its quorum port a moment after its followers ask for it.
_CONNECT_TIMEOUT_S = 5.0
_CONNECT_AGAIN_S = 0.02

_NEVER_HELD = frozenset({PacketType.PROPOSAL, PacketType.PING, PacketType.REVALIDATE})

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LagSeen:
    """`held`: packets that wait now; `delayed`: packets that were let go late, in all;
    `following`: whether a leader has brought the node up to date through a proxy here; `refused`:
    connections of the node that were ended at once (`QuorumLag.refuse`), in all."""

    delay_ms: int
    held: int
    delayed: int
    following: bool
    refused: int = 0


class QuorumLag:
    """The proxies of an ensemble, on a loop and a thread of their own.

    They do not use the trial's loop, for two reasons: nodes join their ensemble while the caller that started it
    blocks, and a trial that computes for a second must not delay a follower or break its ensemble. All state belongs to
    that thread. The methods pass their work to it and wait for the answer.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="quorum lag", daemon=True)
        self._followers: dict[str, _Follower] = {}
        self._servers: list[asyncio.Server] = []
        self._thread.start()

    def add(self, name: str, quorum_port: int, *, host: str = HOST, listen: str = HOST) -> int:
        """The port of the address `listen` at which node `name` finds the quorum port of another
        one, whose address is `host`."""
        return self._ask(self._listen(name, listen, (host, quorum_port), _QuorumConnection))

    def forward(self, name: str, port: int, *, host: str, listen: str) -> int:
        """The port of the address `listen` that leads node `name` to `port` of `host`, without delays: for
        elections."""
        return self._ask(self._listen(name, listen, (host, port), _Connection))

    async def _listen(self, name: str, listen: str, target: tuple[str, int], kind: type[_Connection]) -> int:
        follower = self._followers.setdefault(name, _Follower(name))

        def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if not follower.refuses(writer):
                follower.connections[kind(follower, reader, writer, target)] = None

        server = await asyncio.start_server(accepted, listen, 0)
        self._servers.append(server)
        port: int = server.sockets[0].getsockname()[1]
        return port

    def refuse(self, name: str, *, refused: bool) -> None:
        """Whether new connections of node `name` are ended at once. Those that it has stay open, as they do for a node
        that is cut off."""
        self._ask(self._refuse(name, refused))

    async def _refuse(self, name: str, refused: bool) -> None:
        self._followers[name].refused_now = refused

    def set_delay(self, name: str, delay_ms: int) -> None:
        """From now on: what waits already waits that long since it came. 0 lets all of it go."""
        self._ask(self._set_delay(name, delay_ms))

    async def _set_delay(self, name: str, delay_ms: int) -> None:
        follower = self._followers[name]
        follower.delay_s = delay_ms / 1000
        for connection in follower.connections:
            connection.release()

    def seen(self, name: str) -> LagSeen:
        return self._ask(self._seen(name))

    async def _seen(self, name: str) -> LagSeen:
        follower = self._followers[name]
        held = sum(len(connection.held) for connection in follower.connections)
        following = any(connection.up_to_date for connection in follower.connections)
        return LagSeen(round(follower.delay_s * 1000), held, follower.delayed, following, follower.refused)

    def _ask(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_ANSWER_TIMEOUT_S)

    def close(self) -> None:
        """End every connection and the thread. Harmless when closed."""
        if self._loop.is_closed():
            return
        self._ask(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        tasks = [connection.task for follower in self._followers.values() for connection in follower.connections]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # transports that were aborted say so to their protocols


class _Follower:
    """A node that may lag, and its connections to leaders."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.delay_s = 0.0
        self.delayed = 0
        self.refused_now = False
        self.refused = 0
        self.connections: dict[_Connection, None] = {}

    def refuses(self, writer: asyncio.StreamWriter) -> bool:
        """End a new connection, if it is to have none."""
        if self.refused_now:
            self.refused += 1
            writer.transport.abort()
        return self.refused_now


class _Connection:
    """A node's connection to another one, which carries both ways until either side ends."""

    def __init__(
        self, follower: _Follower, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: tuple[str, int]
    ) -> None:
        self.up_to_date = False
        #: When it came, and the packet.
        self.held: deque[tuple[float, bytes]] = deque()
        self._follower = follower
        self._reader = reader
        self._writer = writer
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self.task = self._loop.create_task(self._carry(*target))

    async def _carry(self, host: str, port: int) -> None:
        """Until either side ends; what is held then never arrives."""
        onward: asyncio.StreamWriter | None = None
        try:
            back, onward = await self._reach(host, port)
            both = [
                self._loop.create_task(_pump(self._reader, onward)),
                self._loop.create_task(self._back(back)),
            ]
            try:
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in both:
                    task.cancel()
                await asyncio.gather(*both, return_exceptions=True)
        except OSError:
            pass  # no server listens there, or it does not lead: the node tries another
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self._writer.transport.abort()
            if onward is not None:
                onward.transport.abort()
            self._follower.connections.pop(self, None)

    async def _reach(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect onward. Raises OSError."""
        return await asyncio.open_connection(host, port)

    async def _back(self, source: asyncio.StreamReader) -> None:
        """Carry what comes back."""
        await _pump(source, self._writer)

    def release(self) -> None:
        """Let go what is due, and come back for the next."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now, delay_s = self._loop.time(), self._follower.delay_s
        while self.held and self.held[0][0] + delay_s <= now:
            self._writer.write(self.held.popleft()[1])
            self._follower.delayed += 1
        if self.held:
            self._timer = self._loop.call_at(self.held[0][0] + delay_s, self.release)


class _QuorumConnection(_Connection):
    """A follower's connection to its leader."""

    async def _reach(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the leader, and try again until it listens. The follower's connection was already accepted here;
        if it were closed now, the follower would take the leader for dead while the leader waits for it. Raises
        OSError."""
        async with asyncio.timeout(_CONNECT_TIMEOUT_S):
            while True:
                try:
                    return await asyncio.open_connection(host, port)
                except ConnectionRefusedError:
                    await asyncio.sleep(_CONNECT_AGAIN_S)

    async def _back(self, source: asyncio.StreamReader) -> None:
        splitter = PacketSplitter()
        while data := await source.read(_READ_BYTES):
            try:
                packets = splitter.feed(data)
            except QuorumProtocolError as error:
                _log.error("follower %s: %s; its connection to the leader is ended", self._follower.name, error)
                return
            for packet in packets:
                self._pass(packet)
            await self._writer.drain()

    def _pass(self, packet: Packet) -> None:
        late = self.up_to_date and packet.type not in _NEVER_HELD and (self._follower.delay_s > 0 or self.held)
        if late:
            self.held.append((self._loop.time(), packet.data))
            if self._timer is None:
                self.release()
            return
        self.up_to_date = self.up_to_date or packet.type == PacketType.UPTODATE
        self._writer.write(packet.data)


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(_READ_BYTES):
        target.write(data)
        await target.drain()
