"""Rest: when nodes have nothing more to do.

Rest is derived from the events, in the same way in every world. Nodes of any kind are at rest when all living nodes are
connected, their sessions are open at the server, no session of a dead node is open, and none of this has changed for a
while (`NodeTracker`). A consumer group is at rest if, in addition, no rebalance runs or is triggered, no notification
waits, and no owner, broker or topic has changed for two back-offs (`RestTracker`). Nor may a fault have begun or ended
in that time, because in a live trial its effects are read a moment later.

The runner feeds a tracker while the trial runs. The checks feed another one with the history, and compare the two
(`checks.disturbances`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from rebalance_lab.history.events import Event, Kind, Layer

#: The kinds of events that affect the rest of nodes of any kind.
BEARING = frozenset(
    {
        Kind.CONNECTED,
        Kind.DISCONNECTED,
        Kind.EXPIRED,
        Kind.SESSION_CLOSED,
        Kind.FAULT_BEGAN,
        Kind.FAULT_BIT,
        Kind.FAULT_ENDED,
    }
)

#: The kinds that affect the rest of a group. Most events of a history are of other kinds.
BEARING_ON_GROUP = BEARING | {
    Kind.MEMBER_STARTED,
    Kind.MEMBER_REFUSED,
    Kind.MEMBER_CLOSED,
    Kind.CREATED,
    Kind.CHANGED,
    Kind.DELETED,
    Kind.NOTIFICATION_QUEUED,
    Kind.NOTIFICATION_HANDLED,
    Kind.REBALANCE_TRIGGERED,
    Kind.REBALANCE_BEGAN,
    Kind.REBALANCE_ENDED,
}

#: With these events of faults a node is gone. One that leaves has closed its session by then.
_GONE = {(Kind.FAULT_BEGAN, "kill"), (Kind.FAULT_ENDED, "leave")}

#: Actors that are not nodes of a trial.
RUNNER, REGISTRY = "runner", "zookeeper"


@dataclass(slots=True)
class NodeState:
    """What the events so far show of one life of a node. `gone`: it was killed, or has closed."""

    actor: str
    session: str | None = None
    connected: bool = False
    gone: bool = False
    member: str | None = None  # the consumer id of a member

    def busy(self, closed_sessions: Mapping[str, Event]) -> str | None:
        """Why this node is not at rest; None when it is."""
        if self.gone:
            return None if self.session is None or self.session in closed_sessions else "its session is not closed yet"
        if not self.connected:
            return "it is not connected"
        if self.session in closed_sessions:
            return "it does not know yet that its session has ended"
        return self._busy()

    def _busy(self) -> str | None:
        """Why a connected node with an open session is not at rest."""
        return None


S = TypeVar("S", bound=NodeState)


@dataclass(slots=True)
class StateTracker(Generic[S]):
    """What a runner needs to know of the nodes of a trial, of any kind. It processes every event.

    `nodes`: the state of each actor's current life. `former`: earlier lives of actors that were started again.
    `closed_sessions`: the SESSION_CLOSED of each session.
    """

    nodes: dict[str, S] = field(default_factory=dict)
    former: list[S] = field(default_factory=list)
    closed_sessions: dict[str, Event] = field(default_factory=dict)
    last_change_us: int = 0

    def feed(self, event: Event) -> bool:
        """Process an event. True if it bears on rest."""
        if not self._process(event):
            return False
        self.last_change_us = max(self.last_change_us, event.at_us)
        return True

    def refused(self, actors: Iterable[str]) -> bool:
        """Whether the settings of all of these were refused: then their process ends by itself."""
        return False

    def busy(self) -> str | None:
        """Which node is not at rest, and why; None when all are."""
        for state in (*self.former, *(self.nodes[actor] for actor in sorted(self.nodes))):
            why = state.busy(self.closed_sessions)
            if why is not None:
                return f"{state.actor}: {why}"
        return None

    def _process(self, event: Event) -> bool:
        if event.kind is Kind.SESSION_CLOSED and event.session is not None:
            self.closed_sessions[event.session] = event
        elif event.layer is Layer.FAULT:
            target = self.nodes.get(str(event.of("target")))
            if (event.kind, event.of("fault")) in _GONE and target is not None:
                target.gone = True
        else:
            state = self._node(event)
            return state is not None and self._of_node(state, event)
        return True

    def _node(self, event: Event) -> S | None:
        """The state of the node that recorded an event."""
        return self.nodes.get(event.actor)

    def _begin(self, state: S) -> None:
        """A life of a node begins."""
        former = self.nodes.get(state.actor)
        if former is not None:
            former.gone = True
            self.former.append(former)
        self.nodes[state.actor] = state

    def _of_node(self, state: S, event: Event) -> bool:
        match event.kind:
            case Kind.CONNECTED:
                state.connected, state.session = True, event.session
            case Kind.DISCONNECTED | Kind.EXPIRED:
                state.connected = False
            case _:
                return False
        return True


class NodeTracker(StateTracker[NodeState]):
    """Rest of nodes of which only the sessions are known. A life begins with its first connection."""

    def feed(self, event: Event) -> bool:
        """Process an event. True if it bears on rest."""
        return event.kind in BEARING and super().feed(event)

    def _node(self, event: Event) -> NodeState | None:
        state = self.nodes.get(event.actor)
        if event.kind is Kind.CONNECTED and event.actor not in {RUNNER, REGISTRY} and (state is None or state.gone):
            self._begin(NodeState(event.actor))
        return self.nodes.get(event.actor)


@dataclass(slots=True)
class MemberState(NodeState):
    """What the events so far show of one life of a member."""

    running: int = 0
    triggered: bool = False
    queued: int = 0
    rebalances: int = 0
    refused: bool = False  # its settings, or its id
    registered: Event | None = None  # the registry's latest event that created its id znode

    def _busy(self) -> str | None:
        reasons = (
            (self.running > 0, "it rebalances"),
            (self.triggered, "a rebalance is triggered"),
            (self.queued > 0, f"{self.queued} notifications wait"),
        )
        return next((reason for holds, reason in reasons if holds), None)


@dataclass(slots=True)
class RestTracker(StateTracker[MemberState]):
    """Rest of a consumer group."""

    _registrations: dict[str, Event] = field(default_factory=dict)  # consumer id -> its latest

    def feed(self, event: Event) -> bool:
        """Process an event. True if it bears on rest."""
        return event.kind in BEARING_ON_GROUP and StateTracker.feed(self, event)

    def refused(self, actors: Iterable[str]) -> bool:
        """Whether all of these were refused: then their process ends by itself."""
        return all(actor in self.nodes and self.nodes[actor].refused for actor in actors)

    def _process(self, event: Event) -> bool:
        if event.kind is Kind.MEMBER_STARTED:
            member = event.member or ""
            self._begin(MemberState(event.actor, member=member, registered=self._registrations.get(member)))
        elif event.kind is Kind.MEMBER_REFUSED:
            state = self.nodes.setdefault(event.actor, MemberState(event.actor, member=""))
            state.gone = state.refused = True
        elif event.kind is Kind.CREATED or event.kind is Kind.DELETED or event.kind is Kind.CHANGED:
            if event.group is None and not str(event.of("path")).startswith("/brokers/"):
                return False
            if event.kind is Kind.CREATED and event.member is not None and event.partition is None:
                self._registered(event)
        else:
            return StateTracker._process(self, event)
        return True

    def _registered(self, event: Event) -> None:
        """In a live trial, the registry's event of a registration may be read before the member's own file."""
        self._registrations[event.member or ""] = event
        for state in self.nodes.values():
            if state.member == event.member:
                state.registered = event

    def _of_node(self, state: MemberState, event: Event) -> bool:
        match event.kind:
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
                return StateTracker._of_node(self, state, event)
        return True
