"""Which server a simulated session tries next, and how long it waits before: Java's
StaticHostProvider and the waits of ClientCnxn, as `live.hosts` has them."""

from __future__ import annotations

from collections.abc import Callable

from rebalance_lab.world.simulated.link import ServerEnd

#: ClientCnxn.startConnect waits a random time below this before each connection but the first.
RANDOM_WAIT_US = 1_000_000

#: StaticHostProvider waits so long in addition where the cursor comes back to the server that
#: served last.
ROUND_WAIT_US = 1_000_000


class Hosts:
    """A session's servers, in the order it tries them, and the cursor on them.

    `below`: a random number below a limit, from the process's stream of reconnect waits.
    """

    __slots__ = ("_below", "_current", "_last", "_servers")

    def __init__(self, servers: tuple[ServerEnd, ...], below: Callable[[int], int]) -> None:
        self._servers = servers
        self._below = below
        self._current = 0
        self._last = 0

    @property
    def count(self) -> int:
        return len(self._servers)

    @property
    def server(self) -> ServerEnd:
        """The server of now."""
        return self._servers[self._current]

    def first(self) -> ServerEnd:
        """The server of the very first attempt, which waits for nothing."""
        return self._servers[0]

    def move(self) -> int:
        """On to the next server; how many microseconds to wait before."""
        self._current = (self._current + 1) % len(self._servers)
        wait_us = ROUND_WAIT_US if self._current == self._last and len(self._servers) > 1 else 0
        return wait_us + self._below(RANDOM_WAIT_US)

    def established(self) -> None:
        """The server serves the session: a full round ends here."""
        self._last = self._current
