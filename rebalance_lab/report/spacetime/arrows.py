"""The arrows of a space-time diagram: what led to what, found in the history."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.history.events import Event, EventId, Kind
from rebalance_lab.report.scene import Scene
from rebalance_lab.report.spacetime.beats import Beat

#: Causes looked back over from an event, at most: a chain of reads is shorter.
CAUSES = 64

_REGISTRY = {Kind.CREATED, Kind.CHANGED, Kind.DELETED}
_ENDS_OF_CHAINS = {Kind.WATCH_FIRED, Kind.EXPIRED, Kind.CONNECTED, Kind.MEMBER_STARTED}


@dataclass(frozen=True, slots=True)
class Link:
    """A link from one event to another. `kind`: watch | cause | conflict | session | fault."""

    kind: str
    source: EventId
    target: EventId
    title: str


class _Past:
    """The events of a diagram's time, indexed for look-ups."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.by_id = {event.id: event for event in events}
        self.closed: dict[str | None, Event] = {}
        self.closing: dict[str, Event] = {}
        self._at: dict[str, list[Event]] = {}
        self._below: dict[str, list[Event]] = {}
        for event in events:
            if event.kind in _REGISTRY:
                path = str(event.of("path") or "")
                self._at.setdefault(path, []).append(event)
                self._below.setdefault(path.rpartition("/")[0], []).append(event)
            elif event.kind is Kind.SESSION_CLOSED:
                self.closed.setdefault(event.session, event)
            elif event.kind is Kind.MEMBER_CLOSING:
                self.closing.setdefault(event.actor, event)

    def watched(self, fired: Event) -> Event | None:
        """The last change of the watched znode. A server's log may be slightly late on the clock."""
        changes = self._below if fired.of("event") == "child" else self._at
        found = changes.get(str(fired.of("path") or ""), [])
        place = bisect_right(found, fired.at_us + TOLERANCE_US, key=lambda event: event.at_us)
        return found[place - 1] if place else None

    def in_the_way(self, refused: Event) -> Event | None:
        """The event that created the znode which another member's claim met."""
        made = [
            event
            for event in self._at.get(str(refused.of("path") or ""), ())
            if event.kind is Kind.CREATED
            and event.session != refused.session
            and event.at_us <= refused.at_us + TOLERANCE_US
        ]
        return made[-1] if made else None


def links_of(scene: Scene, beats: Sequence[Beat], events: Sequence[Event]) -> list[Link]:
    """The links that end in one of the beats. `events`: those of the diagram's time, from which sources are taken. A
    beat of the crowd gets one link for all."""
    past = _Past(events)
    found: list[Link] = []
    for beat in beats:
        for event in beat.events:
            link = _link(scene, event, past)
            if link is not None:
                found.append(link)
                if beat.actor != event.actor:
                    break
    return found


def _link(scene: Scene, event: Event, past: _Past) -> Link | None:
    source, kind, title = None, "", ""
    match event.kind:
        case Kind.WATCH_FIRED:
            source, kind = past.watched(event), "watch"
            title = f"The change that fired {event.actor}'s watch on {event.of('path')}"
        case Kind.REBALANCE_BEGAN:
            source, kind, title = _cause(event, past.by_id), "cause", f"Why {event.actor} rebalances"
        case Kind.EXPIRED:
            source, kind, title = past.closed.get(event.session), "session", f"{event.actor} learns of it only now"
        case Kind.SESSION_CLOSED:
            name = scene.session_names.get(event.session or "", "")
            source, kind, title = past.closing.get(name), "session", f"{name} closes its session"
        case Kind.FAILED_OP:
            source, kind = past.in_the_way(event), "conflict"
            title = f"{event.actor}'s claim is refused: another's owner znode stands there"
    late = source is not None and source.at_us > event.at_us + TOLERANCE_US
    return None if source is None or late else Link(kind, source.id, event.id, title)


def _cause(event: Event, known: Mapping[EventId, Event]) -> Event | None:
    """The watch, expiry or connection that led to an event."""
    for _ in range(CAUSES):
        before = None if event.cause is None else known.get(event.cause)
        if before is None:
            return None
        if before.kind in _ENDS_OF_CHAINS:
            return before
        event = before
    return None
