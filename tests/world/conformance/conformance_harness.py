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

STORY_LIMIT_US = 30_000_000
EVENT_LIMIT_US = 15_000_000
CLOSE_LIMIT_US = 5_000_000

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
    def _open(self, timeout_ms: int) -> ZooKeeper: ...

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

    def open(self, timeout_ms: int = LONG_TIMEOUT_MS) -> ZooKeeper:
        """A new session, not connected yet."""
        session = self._open(timeout_ms)
        self.sessions.append(session)
        return session

    async def connected(self, timeout_ms: int = LONG_TIMEOUT_MS) -> ZooKeeper:
        session = self.open(timeout_ms)
        await self.expect(session, SessionEventKind.CONNECTED)
        return session

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

    def sleep_ms(self, duration_ms: float) -> Future[None]:
        return self.kernel.sleep(round(duration_ms * 1000))

    async def told(self, story: Story) -> None:
        """The story with its beginning and end: its root is made, its sessions are closed."""
        async with self.kernel.timeout(STORY_LIMIT_US, "the story"):
            await self.make_root()
            await story(self)
            await self.close_all()

    async def make_root(self) -> None:
        maker = self._open(LONG_TIMEOUT_MS)
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


def also_kazoo(test: Callable[..., None]) -> Callable[..., None]:
    """The case needs nothing that kazoo's client lacks: it is told with it too."""
    test.also_kazoo = True
    return test
