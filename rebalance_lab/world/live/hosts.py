"""Which server a session tries next, and how long it waits before (Java's StaticHostProvider
and the waits of its ClientCnxn, ZooKeeper 3.4 to 3.9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rebalance_lab.kernel import RandomStream
from rebalance_lab.world.live.connect_string import Server


@dataclass(frozen=True, slots=True)
class ConnectWaits:
    """`random_us`: a random time below this before every connect, once a first one got through.
    `round_us`: in addition when the cursor is back at the server that served last (before there
    was one: at the first), so that a session does not spin. With a single server that is every
    reconnect: 1 to 2 s."""

    random_us: int = 1_000_000
    round_us: int = 1_000_000


JAVA_WAITS = ConnectWaits()


class Hosts:
    """A session's servers, shuffled once, and the cursor on them.

    `old`: those found to know no multi-read (before 3.6); shared by the sessions of a factory.
    """

    def __init__(
        self, servers: Sequence[Server], random: RandomStream, waits: ConnectWaits, old: dict[Server, None]
    ) -> None:
        assert servers, "a connect string names a server"
        self.servers = list(servers)
        random.shuffle(self.servers)
        self._random = random
        self._waits = waits
        self._old = old
        self._current = -1
        self._last: int | None = None
        self._got_through = False

    def next(self) -> tuple[Server, int]:
        """The server to try, and how many microseconds to wait before."""
        self._current = (self._current + 1) % len(self.servers)
        wait_us = 0
        if self._last is None:  # the very first attempt
            self._last = 0
        elif self._current == self._last:
            wait_us = self._waits.round_us
        if self._got_through and self._waits.random_us:
            wait_us += self._random.below(self._waits.random_us)
        return self.servers[self._current], wait_us

    def opened(self) -> None:
        """A connection stands, whether or not a session comes of it."""
        self._got_through = True

    def established(self) -> None:
        """The server serves the session: a full round ends here."""
        self._last = self._current

    @property
    def know_multi_read(self) -> bool:
        """Whether none of them was found not to."""
        return not any(server in self._old for server in self.servers)

    def found_old(self, server: Server) -> None:
        self._old[server] = None
