"""What a conformance case may do to its world: one interface, one subclass for each world.

A case is `async def story(h: Harness)`: it uses sessions through the port only, and the
harness for what a port cannot do: break, hold, lose, expire, and read the server's log.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

from rebalance_lab.history.transactions import Transaction
from rebalance_lab.kernel import Future, Kernel
from rebalance_lab.world.errors import NodeExists
from rebalance_lab.world.ports import SessionEvent, SessionEventKind, SessionState, ZooKeeper

TICK_MS = 500
#: Most that a server with this tick grants: no session of a case expires by accident.
LONG_TIMEOUT_MS = 20 * TICK_MS
#: Least that it grants.
SHORT_TIMEOUT_MS = 2 * TICK_MS

#: Far longer than anything takes on a busy machine; a test ends after 120 s.
STORY_LIMIT_US = 100_000_000
EVENT_LIMIT_US = 60_000_000
CLOSE_LIMIT_US = 30_000_000
POLL_US = 10_000

#: Sessions opened to get one that went to the server it should: one of three does.
OPENINGS_LIMIT = 40

Story = Callable[["Harness"], Awaitable[None]]


class Harness(ABC):
    """One run of one story. `root`: a znode of its own; below it the story may do as it likes.

    `kind`: simulated | embedded | kazoo, for expectations that differ on purpose.
    """

    kind: str
    kernel: Kernel
    root: str

    def __init__(self) -> None:
        self.sessions: list[ZooKeeper] = []

    # -- each world's own -------------------------------------------------------------------

    @abstractmethod
    def _open(self, timeout_ms: int, servers: tuple[str, ...], chroot: str) -> ZooKeeper: ...

    @abstractmethod
    def break_now(self, session: ZooKeeper) -> None:
        """The session's connection breaks: what is in flight is lost, both ends learn."""

    @abstractmethod
    def hold(self, session: ZooKeeper) -> None:
        """No new connection of the session comes about until `release`; attempts hang."""

    @abstractmethod
    def release(self, session: ZooKeeper) -> None: ...

    @abstractmethod
    def lose_next_reply(self, session: ZooKeeper) -> None:
        """The server does what is asked next; the connection breaks before its answer."""

    @abstractmethod
    def expire(self, session: ZooKeeper) -> None:
        """The server closes the session, though its client lives; done on return."""

    @abstractmethod
    def cut(self, session: ZooKeeper, *, to_server: bool = False, to_client: bool = False) -> None:
        """What is sent these ways is lost, and nobody is told; new connections are cut off too."""

    @abstractmethod
    def heal(self, session: ZooKeeper) -> None:
        """Undo `cut`: what was lost on a connection that still stands is sent again, as TCP does."""

    @abstractmethod
    async def stop(self, session: ZooKeeper, duration_ms: int) -> None:
        """Stop the client's process for so long, when it has sent what was asked before, and before it
        reads an answer."""

    @abstractmethod
    def transactions(self) -> list[Transaction]:
        """What the server has logged since the story began, in zxid order."""

    @abstractmethod
    def step(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run `coroutine` to its end. Raises what it raises. May be called again."""

    @abstractmethod
    def end(self) -> None:
        """Unwind what is left; nothing can be run afterwards."""

    # -- for all ----------------------------------------------------------------------------

    def run(self, story: Story) -> None:
        """Run a story from its beginning to its end. Raises what it raises."""
        try:
            self.step(self.told(story))
        finally:
            self.end()

    def open(self, timeout_ms: int = LONG_TIMEOUT_MS, *, servers: tuple[str, ...] = (), chroot: str = "") -> ZooKeeper:
        """A new session, not connected yet. `servers`: those of an ensemble it may connect to."""
        session = self._open(timeout_ms, servers, chroot)
        self.sessions.append(session)
        return session

    async def connected(
        self, timeout_ms: int = LONG_TIMEOUT_MS, *, servers: tuple[str, ...] = (), chroot: str = ""
    ) -> ZooKeeper:
        """A new session; of several servers it is connected to the first."""
        for _ in range(OPENINGS_LIMIT):
            session = self.open(timeout_ms, servers=servers, chroot=chroot)
            await self.expect(session, SessionEventKind.CONNECTED)
            if len(servers) < 2 or self.at(session) == servers[0]:
                return session
            self.sessions.remove(session)  # a client takes its servers in an order of its own
            await session.close()
        raise AssertionError(f"none of {OPENINGS_LIMIT} sessions went to {servers[0]} first")

    def at(self, session: ZooKeeper) -> str:
        """The name of the server that the session is connected to."""
        raise NotImplementedError("there is only one server")

    async def expect(self, session: ZooKeeper, kind: SessionEventKind) -> SessionEvent:
        """The session's next event, which must be of this kind."""
        event = await self.within(session.events.readable(), f"{kind.value} of {session!r}", session)
        assert event.kind is kind, f"expected {kind}, got {event}"
        return event

    async def within(self, readable: Future[None], what: str, session: ZooKeeper) -> SessionEvent:
        async with self.kernel.timeout(EVENT_LIMIT_US, what):
            await readable
            return await session.events.get()

    async def break_connection(self, session: ZooKeeper) -> None:
        """Break it, and wait until the client has learnt it."""
        self.break_now(session)
        await self.expect(session, SessionEventKind.DISCONNECTED)

    async def away(self, session: ZooKeeper) -> None:
        """Disconnected until `back`."""
        self.hold(session)
        await self.break_connection(session)

    async def back(self, session: ZooKeeper) -> None:
        self.release(session)
        await self.expect(session, SessionEventKind.CONNECTED)

    async def until(self, condition: Callable[[], Awaitable[bool]], what: str) -> None:
        """Ask again and again until it is so."""
        async with self.kernel.timeout(EVENT_LIMIT_US, what):
            while not await condition():
                await self.kernel.sleep(POLL_US)

    def sleep_ms(self, duration_ms: float) -> Future[None]:
        return self.kernel.sleep(round(duration_ms * 1000))

    async def told(self, story: Story) -> None:
        """The story with its beginning and end: its root is made, its sessions are closed."""
        async with self.kernel.timeout(STORY_LIMIT_US, "the story"):
            await self.make_root()
            await story(self)
            await self.close_all()

    async def make_root(self) -> None:
        maker = self._open(LONG_TIMEOUT_MS, (), "")
        await self.expect(maker, SessionEventKind.CONNECTED)
        for path in (self.root.rpartition("/")[0], self.root):
            if path:
                with suppress(NodeExists):
                    await maker.create(path, b"")
        await maker.close()

    async def close_all(self) -> None:
        for session in self.sessions:
            self.release(session)
        for session in self.sessions:
            if session.state in (SessionState.CONNECTED, SessionState.CONNECTING):
                async with self.kernel.timeout(CLOSE_LIMIT_US, f"close of {session!r}"):
                    await session.close()


class EnsembleHarness(Harness):
    """Several servers. Sessions that name none may connect to any of them."""

    servers: tuple[str, ...] = ("z1", "z2", "z3")

    @abstractmethod
    def at(self, session: ZooKeeper) -> str: ...

    @abstractmethod
    async def leader(self) -> str:
        """Who leads, once somebody does."""

    @abstractmethod
    def kill(self, server: str) -> None: ...

    @abstractmethod
    async def start(self, server: str) -> None:
        """Start one that was killed; it serves on return."""

    @abstractmethod
    def pause(self, server: str) -> None: ...

    @abstractmethod
    def resume(self, server: str) -> None: ...

    @abstractmethod
    def lag(self, server: str, delay_ms: int) -> None:
        """What the leader commits reaches this follower so much later; 0 ends it."""

    async def roles(self) -> tuple[str, str, str]:
        """The leader, and the two others."""
        leader = await self.leader()
        first, second = (name for name in self.servers if name != leader)
        return leader, first, second


def also_kazoo(test: Callable[..., None]) -> Callable[..., None]:
    """The case needs nothing that kazoo's client lacks: it is told with it too."""
    test.also_kazoo = True  # type: ignore[attr-defined]
    return test
