"""Rest: when a group has nothing more to do.

Rest is read from the events, in the same way in every world. A group rests when the members that live are
connected, their sessions are open at the server, no rebalance runs or is triggered, no notification waits, no
dead member's session is still open, and none of this nor any owner, broker or topic has changed for two
back-offs. No fault has begun or ended in that time either: in a live trial its effects are read a moment later.

The runner feeds a tracker while the trial runs. The checks feed another with the history, and compare
(`checks.coherence`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rebalance_lab.history.events import Event, Kind, Layer

#: Kinds of events that may bear on rest. Most events of a history are of other kinds.
BEARING = frozenset(
    {
        Kind.MEMBER_STARTED,
        Kind.MEMBER_REFUSED,
        Kind.MEMBER_CLOSED,
        Kind.SESSION_CLOSED,
        Kind.CREATED,
        Kind.CHANGED,
        Kind.DELETED,
        Kind.CONNECTED,
        Kind.DISCONNECTED,
        Kind.EXPIRED,
        Kind.NOTIFICATION_QUEUED,
        Kind.NOTIFICATION_HANDLED,
        Kind.REBALANCE_TRIGGERED,
        Kind.REBALANCE_BEGAN,
        Kind.REBALANCE_ENDED,
        Kind.FAULT_BEGAN,
        Kind.FAULT_BIT,
        Kind.FAULT_ENDED,
    }
)


@dataclass(slots=True)
class MemberState:
    """What the events so far say of one member."""

    actor: str
    member: str
    session: str | None = None
    connected: bool = False
    running: int = 0
    triggered: bool = False
    queued: int = 0
    rebalances: int = 0
    gone: bool = False
    refused: bool = False  # its settings, or its id
    registered: Event | None = None  # the registry's latest event that created its id znode

    def busy(self, closed_sessions: Mapping[str, Event]) -> str | None:
        """Why this member is not at rest; None when it is."""
        if self.gone:
            return None if self.session is None or self.session in closed_sessions else "its session is not closed yet"
        reasons = (
            (not self.connected, "it is not connected"),
            (self.session in closed_sessions, "it does not know yet that its session has ended"),
            (self.running > 0, "it rebalances"),
            (self.triggered, "a rebalance is triggered"),
            (self.queued > 0, f"{self.queued} notifications wait"),
        )
        return next((reason for holds, reason in reasons if holds), None)


@dataclass(slots=True)
class RestTracker:
    """Feed it every event; ask whether the group rests."""

    members: dict[str, MemberState] = field(default_factory=dict)
    closed_sessions: dict[str, Event] = field(default_factory=dict)  # session -> its SESSION_CLOSED
    last_change_us: int = 0
    _registrations: dict[str, Event] = field(default_factory=dict)  # consumer id -> its latest

    def feed(self, event: Event) -> bool:
        """Take an event in; True when it bears on rest."""
        if event.kind not in BEARING:
            return False
        if event.kind is Kind.MEMBER_STARTED:
            registered = self._registrations.get(event.member or "")
            self.members[event.actor] = MemberState(event.actor, event.member or "", registered=registered)
        elif event.kind is Kind.MEMBER_REFUSED:
            state = self.members.setdefault(event.actor, MemberState(event.actor, ""))
            state.gone = state.refused = True
        elif event.kind is Kind.SESSION_CLOSED and event.session is not None:
            self.closed_sessions[event.session] = event
        elif event.layer is Layer.FAULT:
            if event.kind is Kind.FAULT_BEGAN and event.of("fault") == "kill":
                self._gone(str(event.of("target")))
        elif event.kind is Kind.CREATED or event.kind is Kind.DELETED or event.kind is Kind.CHANGED:
            if event.group is None and not str(event.of("path")).startswith("/brokers/"):
                return False
            if event.kind is Kind.CREATED and event.member is not None and event.partition is None:
                self._registered(event)
        elif not self._member_event(event):
            return False
        self.last_change_us = max(self.last_change_us, event.at_us)
        return True

    def refused(self, actors: Iterable[str]) -> bool:
        """Whether all of these were refused: then their process ends by itself."""
        return all(actor in self.members and self.members[actor].refused for actor in actors)

    def _gone(self, actor: str) -> None:
        if actor in self.members:
            self.members[actor].gone = True

    def _registered(self, event: Event) -> None:
        """Live, the registry may tell of a registration before the member's own file is read."""
        self._registrations[event.member or ""] = event
        for state in self.members.values():
            if state.member == event.member:
                state.registered = event

    def _member_event(self, event: Event) -> bool:
        state = self.members.get(event.actor)
        if state is None:
            return False
        match event.kind:
            case Kind.CONNECTED:
                state.connected, state.session = True, event.session
            case Kind.DISCONNECTED | Kind.EXPIRED:
                state.connected = False
            case Kind.REBALANCE_TRIGGERED:
                state.triggered = True
            case Kind.REBALANCE_BEGAN:
                state.triggered = False
                state.running += 1
            case Kind.REBALANCE_ENDED:
                state.running -= 1
                state.rebalances += 1
            case Kind.NOTIFICATION_QUEUED:
                state.queued += 1
            case Kind.NOTIFICATION_HANDLED:
                state.queued -= 1
            case Kind.MEMBER_CLOSED:
                state.gone = True
            case _:
                return False
        return True

    def busy(self) -> str | None:
        """Who is not at rest and why; None when all are."""
        for actor in sorted(self.members):
            why = self.members[actor].busy(self.closed_sessions)
            if why is not None:
                return f"{actor}: {why}"
        return None
