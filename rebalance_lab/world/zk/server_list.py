"""Which server a session tries next, and how long it waits first, in both worlds.

Source: StaticHostProvider.next(1000) and the random wait of ClientCnxn (in run of 3.4.6, in
startConnect of 3.9.3); the waits are the same in ZooKeeper 3.4.6 and 3.9.3. When the connect timeout
starts is not: 3.4.6 counts it from before the waits (docs/design.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

ServerT = TypeVar("ServerT")


@dataclass(frozen=True, slots=True)
class ConnectWaits:
    """The two waits of a connection attempt. If both apply they add up.

    `random_us`: a random time below this, after any connection was opened (`isFirstConnect`). `round_us`: this time,
    when the cursor returns to the server that served last, or to the first one if none did. With one server that is
    every attempt but the first, so a reconnect takes 1 to 2 s.
    """

    random_us: int = 1_000_000
    round_us: int = 1_000_000

    @property
    def longest_ms(self) -> int:
        """The longest time that a client waits before it connects again."""
        return (self.random_us + self.round_us) // 1000


JAVA_WAITS = ConnectWaits()


class ServerList(Generic[ServerT]):
    """The servers of one session, in the order it tries them, and a cursor on them.

    `servers`: in that order; the caller has shuffled them, as Java does. `below`: draws a number from 0 to below the
    given limit.
    """

    __slots__ = ("_below", "_current", "_got_through", "_last", "_waits", "servers")

    def __init__(
        self, servers: tuple[ServerT, ...], below: Callable[[int], int], waits: ConnectWaits = JAVA_WAITS
    ) -> None:
        assert servers, "a connect string names a server"
        self.servers = servers
        self._below = below
        self._waits = waits
        self._current = -1
        self._last = -1
        self._got_through = False

    def next(self) -> tuple[ServerT, int]:
        """The server to try, and how many microseconds to wait before. The very first attempt waits
        for nothing."""
        self._current = (self._current + 1) % len(self.servers)
        wait_us = self._waits.round_us if self._current == self._last else 0
        if self._last == -1:
            self._last = 0
        if self._got_through and self._waits.random_us:
            wait_us += self._below(self._waits.random_us)
        return self.servers[self._current], wait_us

    def opened(self) -> None:
        """A TCP connection was opened, whether or not a session comes of it."""
        self._got_through = True

    def established(self) -> None:
        """The server serves the session: a full round ends here."""
        self._last = self._current
