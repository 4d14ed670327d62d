"""The sessions, and when they expire: a standalone server's, or those of an ensemble's leader.

Pings are not simulated: a session whose client runs and is connected lives, and costs nothing.
Its clock is armed when the client falls silent (its process pauses or dies, its link breaks).
The last ping that the server then has follows from the client's last request: pings come each third of
the timeout after it (in Java at the latest: see `heartbeat`).

In an ensemble the leader alone ends sessions, and counts from when it was told of a client. It hears
its own clients itself. A follower notes whom it hears (LearnerSessionTracker.touchSession), and reports
them with its answer to the leader's next ping (Learner.ping), which the leader sends every half tick
(Leader.lead). So the session of a follower's client ends up to half a tick later. Source: ZooKeeper
3.4.6 and 3.9.3.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rebalance_lab.kernel import Kernel, Process, RandomStream
from rebalance_lab.world.simulated.link import Link
from rebalance_lab.world.simulated.settings import SIMULATED_EPOCH_MS, ServerSettings

#: As SessionTrackerImpl makes it from the time the server started; the server's own id comes before.
_SERVER_SHIFT = 56
_FIRST_SESSION_ID = ((SIMULATED_EPOCH_MS << 24) & 0xFFFF_FFFF_FFFF_FFFF) >> 8


#: When the leader is told of a client that a server heard at a given time, both in µs.
Tells = Callable[[int], int]


class ServerSession:
    """A session at the servers.

    `heard_us`: when its server last heard its client. `told_us`: when the leader learned of that, or will; kept only
    while `expiry` is armed. `expiry`: the armed timer, None while the client is well. `process`: its client's, once it
    is attached.
    """

    __slots__ = ("expiry", "heard_us", "id", "link", "process", "timeout_ms", "told_us")

    def __init__(self, session_id: int, timeout_ms: int) -> None:
        self.id = session_id
        self.timeout_ms = timeout_ms
        self.link: Link | None = None
        self.heard_us = 0
        self.told_us = 0
        self.expiry: Any | None = None
        self.process: Process | None = None

    @property
    def reachable(self) -> bool:
        """The client is there and would ping, and the pings would arrive."""
        link = self.link
        return link is not None and link.open and link.process.running and link.reaches_server


class SessionTable:
    """All living sessions, and their expiry. `expired` is called with each that has timed out. `losing`: which reply to
    a process is lost next, in this session or a later one (see `SimulatedZooKeeper.lose_next_reply`)."""

    def __init__(
        self, kernel: Kernel, settings: ServerSettings, random: RandomStream, expired: Callable[[ServerSession], None]
    ) -> None:
        self.living: dict[int, ServerSession] = {}
        self.losing: dict[Process, str] = {}
        self._now_us = kernel.now_us
        self._driver = kernel.driver
        self._settings = settings
        self._expired = expired
        self._opened: dict[int, int] = {}
        self._tick_us = settings.tick_ms * 1000
        #: Where in a tick virtual time begins: a real server has ticked before the trial.
        self._phase_us = random.below(self._tick_us)

    def open(self, asked_timeout_ms: int, server: int) -> ServerSession:
        """A new session, opened at the server of this number (from 1)."""
        count = self._opened.get(server, 0)
        self._opened[server] = count + 1
        session_id = (server << _SERVER_SHIFT | _FIRST_SESSION_ID) + count
        session = ServerSession(session_id, self._settings.negotiate(asked_timeout_ms))
        self.living[session.id] = session
        return session

    def attach(self, session: ServerSession, link: Link, tells_us: Tells) -> None:
        """The session's client is connected by `link` from now."""
        session.link, session.process = link, link.process
        self.heard_now(session, tells_us)

    def hear(self, session: ServerSession, tells_us: Tells) -> None:
        """Something came from the session's client."""
        if session.expiry is None:
            session.heard_us = self._now_us()
        else:
            self.heard_now(session, tells_us)

    def silent(self, session: ServerSession, tells_us: Tells, *, mute: bool = False) -> None:
        """Nothing will come from the client for now: its next ping will be missed. `mute`: its server no longer reports
        to the leader which clients it heard, either."""
        if session.expiry is None:
            session.heard_us = self.pinged_us(session)
            told_us = tells_us(session.heard_us)
            if mute and told_us > self._now_us():  # too late: the leader knows of the ping before
                told_us = tells_us(session.heard_us - session.timeout_ms * 1000 // 3)
            session.told_us = max(session.told_us, told_us)
            self._arm(session)

    def pinged_us(self, session: ServerSession) -> int:
        """When a client that is well was last heard: it pings each third of the timeout in which it sends nothing."""
        now_us = self._now_us()
        return now_us - (now_us - session.heard_us) % (session.timeout_ms * 1000 // 3)

    def drop(self, session: ServerSession) -> None:
        """The session is over."""
        del self.living[session.id]
        self._disarm(session)

    def expiry_us(self, session: ServerSession) -> int:
        """When the session expires unless the leader hears of it: ExpiryQueue rounds up to the next tick, and adds a
        whole tick to a time that falls on one."""
        due_us = session.told_us + session.timeout_ms * 1000 + self._phase_us
        return (due_us // self._tick_us + 1) * self._tick_us - self._phase_us

    def heard_now(self, session: ServerSession, tells_us: Tells = int) -> None:
        """Restart its timeout, and arm it if the client will not ping. Without `tells_us` it was the leader that heard
        the client."""
        self._disarm(session)
        session.heard_us = self._now_us()
        session.told_us = tells_us(session.heard_us)
        if not session.reachable:
            self._arm(session)

    def _arm(self, session: ServerSession) -> None:
        session.expiry = self._driver.call_at(self.expiry_us(session), partial(self._due, session))

    def _disarm(self, session: ServerSession) -> None:
        if session.expiry is not None:
            self._driver.cancel(session.expiry)
            session.expiry = None

    def overdue(self, session: ServerSession) -> None:
        """It expired while no leader could end it: end it now, unless something came from its client."""
        if session.expiry is None and session.id in self.living:
            session.told_us = max(session.told_us, session.heard_us)
            if self.expiry_us(session) <= self._now_us():
                self._expired(session)
            elif not session.reachable:
                self._arm(session)

    def _due(self, session: ServerSession) -> None:
        session.expiry = None
        self._expired(session)
