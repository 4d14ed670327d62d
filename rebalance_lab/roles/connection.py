"""What a consumer's user is told of its connection to ZooKeeper: each change, and each new reason, once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

_NUMBERS = re.compile(r"\d+")


class Standing(Enum):
    """IN_DOUBT: not connected for as long as the session timeout, so that the session may have ended."""

    NEW = "new"
    CONNECTED = "connected"
    LOST = "lost"
    IN_DOUBT = "in doubt"


TRANSITIONS: dict[Standing, frozenset[Standing]] = {
    Standing.NEW: frozenset({Standing.CONNECTED}),
    Standing.CONNECTED: frozenset({Standing.LOST}),
    Standing.LOST: frozenset({Standing.CONNECTED, Standing.IN_DOUBT}),
    Standing.IN_DOUBT: frozenset({Standing.CONNECTED}),
}


@dataclass(frozen=True, slots=True)
class ConnectionReport:
    """`standing`: from now on; `text`: one line for the user; `again`: the session that was lost goes on."""

    standing: Standing
    text: str
    again: bool = False


class ConnectionStory:
    """Takes what happens to the connection, and answers with what to report; None for what is no news."""

    def __init__(self) -> None:
        self.standing = Standing.NEW
        self.number = 0  # of the losses so far
        self._session: str | None = None
        self._told: set[str] = set()

    def connected(self, session: str | None) -> ConnectionReport | None:
        """`session`: its id."""
        again, self._session = session == self._session, session
        before = self.standing
        if before is Standing.CONNECTED:
            return None
        self._change(Standing.CONNECTED)
        self._told.clear()
        if before is Standing.NEW:
            return None
        which = "in the same session" if again else "in a new session"
        return ConnectionReport(self.standing, f"connected to ZooKeeper again, {which}", again)

    def lost(self, why: str) -> ConnectionReport | None:
        """A connection, or an attempt at one, has ended. Attempts before the first connection are the caller's."""
        if self.standing is Standing.NEW:
            return None
        reason = _NUMBERS.sub("", why)
        news, first = reason not in self._told, self.standing is Standing.CONNECTED
        self._told.add(reason)
        if first:
            self.number += 1
            self._change(Standing.LOST)
            return ConnectionReport(self.standing, f"the connection to ZooKeeper is lost, and is tried again: {why}")
        return ConnectionReport(self.standing, f"no connection to ZooKeeper yet: {why}") if news else None

    def overdue(self, timeout_ms: int) -> ConnectionReport | None:
        """The session timeout has passed since the connection was lost."""
        if self.standing is not Standing.LOST:
            return None
        self._change(Standing.IN_DOUBT)
        text = f"not connected for the session timeout of {timeout_ms} ms: others may own its partitions by now"
        return ConnectionReport(self.standing, text)

    def _change(self, new: Standing) -> None:
        assert new in TRANSITIONS[self.standing], f"a connection that is {self.standing.value} cannot be {new.value}"
        self.standing = new
