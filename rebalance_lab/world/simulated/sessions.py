"""The server's sessions and when they expire.

Pings are not simulated: a session whose client runs and is connected lives, and costs nothing.
Its clock is armed when the client falls silent (its process pauses or dies, its link breaks).
The last ping the server then has is as old as it may be by chance: pings come every third of
the timeout.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rebalance_lab.kernel import Kernel, RandomStream
from rebalance_lab.world.simulated.link import Link
from rebalance_lab.world.simulated.settings import SIMULATED_EPOCH_MS, ServerSettings

#: As SessionTrackerImpl makes it from the time the server started; its own id is 1.
FIRST_SESSION_ID = (1 << 56) | (((SIMULATED_EPOCH_MS << 24) & 0xFFFF_FFFF_FFFF_FFFF) >> 8)


class ServerSession:
    """What the server knows of a session.

    `heard_us`: when the server last heard of it. `expiry`: the armed timer, None while all is well.
    """

    __slots__ = ("expiry", "heard_us", "id", "link", "loses_next_reply", "timeout_ms")

    def __init__(self, session_id: int, timeout_ms: int) -> None:
        self.id = session_id
        self.timeout_ms = timeout_ms
        self.link: Link | None = None
        self.heard_us = 0
        self.expiry: Any | None = None
        self.loses_next_reply = False

    @property
    def reachable(self) -> bool:
        """The client is there and would ping."""
        return self.link is not None and self.link.open and self.link.process.running


class SessionTable:
    """All living sessions, and their expiry. `expired` is told of each that has timed out."""

    def __init__(
        self, kernel: Kernel, settings: ServerSettings, random: RandomStream, expired: Callable[[ServerSession], None]
    ) -> None:
        self.living: dict[int, ServerSession] = {}
        self._now_us = kernel.now_us
        self._driver = kernel.driver
        self._settings = settings
        self._random = random
        self._expired = expired
        self._next_id = FIRST_SESSION_ID
        self._tick_us = settings.tick_ms * 1000
        #: Where in a tick virtual time begins: a real server has ticked before the trial.
        self._phase_us = random.below(self._tick_us)

    def open(self, asked_timeout_ms: int) -> ServerSession:
        session = ServerSession(self._next_id, self._settings.negotiate(asked_timeout_ms))
        self._next_id += 1
        self.living[session.id] = session
        return session

    def attach(self, session: ServerSession, link: Link) -> None:
        """The session's client is connected by `link` from now."""
        session.link = link
        self._heard_now(session)

    def hear(self, session: ServerSession) -> None:
        """Something came from the session's client."""
        if session.expiry is None:
            session.heard_us = self._now_us()
        else:
            self._heard_now(session)

    def silent(self, session: ServerSession) -> None:
        """Nothing will come from the client for now: its next ping is due, and will be missed."""
        if session.expiry is None:
            ping_age_us = self._random.below(session.timeout_ms * 1000 // 3)
            session.heard_us = max(session.heard_us, self._now_us() - ping_age_us)
            self._arm(session)

    def drop(self, session: ServerSession) -> None:
        """The session is over."""
        del self.living[session.id]
        self._disarm(session)

    def expiry_us(self, session: ServerSession) -> int:
        """When the session expires unless it is heard: ExpiryQueue rounds up to the next tick,
        a whole one if it falls on one."""
        due_us = session.heard_us + session.timeout_ms * 1000 + self._phase_us
        return (due_us // self._tick_us + 1) * self._tick_us - self._phase_us

    def _heard_now(self, session: ServerSession) -> None:
        self._disarm(session)
        session.heard_us = self._now_us()
        if not session.reachable:
            self._arm(session)

    def _arm(self, session: ServerSession) -> None:
        session.expiry = self._driver.call_at(self.expiry_us(session), partial(self._due, session))

    def _disarm(self, session: ServerSession) -> None:
        if session.expiry is not None:
            self._driver.cancel(session.expiry)
            session.expiry = None

    def _due(self, session: ServerSession) -> None:
        session.expiry = None
        self._expired(session)
