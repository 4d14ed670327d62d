"""The state of the registry at a moment: registrations, owners, topics and brokers; and what its payloads say."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.checks.phases import judged_period, rests_of
from rebalance_lab.history.events import Event, EventId, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import owner_claim
from rebalance_lab.history.views import events_of, once, registry
from rebalance_lab.wire.errors import KafkaException
from rebalance_lab.wire.payloads import read_partitions
from rebalance_lab.wire.registration import Registration, read_registration

K = TypeVar("K")
T = TypeVar("T")

#: (group, topic, partition)
Place = tuple[str, str, int]

#: (group, member)
Registered = tuple[str, str]


@dataclass(frozen=True, slots=True)
class RegistryState:
    """The registry at one moment.

    `ids`: registered member -> its CREATED (or CHANGED). `owners`: place -> the event that made its owner. `freed`:
    place without owner -> the DELETED of its last owner. `topics`: name -> the event that set its partitions, and
    these. `brokers`: path -> its event.
    """

    ids: dict[Registered, Event]
    owners: dict[Place, Event]
    freed: dict[Place, Event]
    topics: dict[str, tuple[Event, tuple[int, ...]]]
    brokers: dict[str, Event]


@once
def states_at_rests(history: History) -> Sequence[tuple[Event, RegistryState]]:
    """Every rest before the phase `closing` with the state then."""
    return [(rest, state_at(history, rest)) for rest in rests_of(history)]


def state_at(history: History, moment: Event) -> RegistryState:
    """The state at a rest, or at a phase (which follows a rest). A quiet time precedes it, so a change within 2 ms of
    it, where two clocks give no order, came after it."""
    return _states(history)[moment.id]


@once
def _states(history: History) -> Mapping[EventId, RegistryState]:
    found: dict[EventId, RegistryState] = {}
    ahead = list(reversed(events_of(history, Kind.REST_REACHED, Kind.PHASE)))
    replay = _Replay()
    for event in registry(history):
        while ahead and event.at_us > ahead[-1].at_us - TOLERANCE_US:
            found[ahead.pop().id] = replay.state()
        replay.take(event)
    found.update((moment.id, replay.state()) for moment in ahead)
    return found


@once
def membership_changes(history: History) -> Sequence[Event]:
    """Registry events that members may watch for, in the registry's order: the change of an id, a broker or a topic."""
    return [event for event in registry(history) if event.kind in _CHANGES and _watched(str(event.of("path") or ""))]


@once
def came_or_went(history: History) -> Sequence[Event]:
    """Ids, brokers and topics that came or went in the judged period."""
    period = judged_period(history)
    changes = membership_changes(history) if period is not None else ()
    return [event for event in changes if event.kind is not Kind.CHANGED and period is not None and period.holds(event)]


def unrested(history: History) -> str | None:
    """Why what checks see at rests is not all of it: something changed, and no rest followed until
    the phase `closing`. None where the last rest came last."""
    period, rests = judged_period(history), rests_of(history)
    if period is None:
        return None
    late = [event for event in membership_changes(history) if period.holds(event) and event.at_us > rests[-1].at_us]
    return f"no rest followed the change of {late[0].of('path')}" if late else None


def _watched(path: str) -> bool:
    match path.split("/"):
        case ["", "consumers", _, "ids", _] | ["", "brokers", "ids" | "topics", _]:
            return True
    return False


@once
def topic_changes(history: History) -> Sequence[tuple[str, Event]]:
    """Every change of a topic's znode with the topic's name, in the registry's order."""
    return [(topic, event) for event in registry(history) if (topic := topic_of(event)) is not None]


def topic_of(event: Event) -> str | None:
    """The topic whose own znode a registry event changed; None for any other event."""
    if event.topic is None or event.partition is not None or event.kind not in _CHANGES:
        return None
    return event.topic if event.of("path") == f"/brokers/topics/{event.topic}" else None


class _Replay:
    """Replays the registry's events in its own order."""

    def __init__(self) -> None:
        self._state = RegistryState({}, {}, {}, {}, {})

    def state(self) -> RegistryState:
        now = self._state
        return RegistryState(dict(now.ids), dict(now.owners), dict(now.freed), dict(now.topics), dict(now.brokers))

    def take(self, event: Event) -> None:
        if event.kind not in _CHANGES:
            return
        now, there = self._state, event.kind is not Kind.DELETED
        claim = owner_claim(event)
        if claim is not None:
            _put(now.owners, claim[:3], event, there)
            _put(now.freed, claim[:3], event, not there)
        elif event.member is not None:
            _put(now.ids, (event.group or "", event.member), event, there)
        elif (topic := topic_of(event)) is not None:
            _put(now.topics, topic, (event, partitions_of(event)), there)
        elif (path := str(event.of("path"))).startswith("/brokers/ids/"):
            _put(now.brokers, path, event, there)


def _put(places: dict[K, T], place: K, value: T, there: bool) -> None:
    """Add a place, or remove it if nothing is there any more."""
    if there:
        places[place] = value
    else:
        places.pop(place, None)


_CHANGES = frozenset({Kind.CREATED, Kind.CHANGED, Kind.DELETED})


def partitions_of(topic: Event) -> tuple[int, ...]:
    """The partitions that a topic's CREATED or CHANGED lists, ascending; none if the payload is not a topic's."""
    try:
        return read_partitions(topic.topic or "", _data(topic))
    except KafkaException:
        return ()


def registration_of(registered: Event) -> Registration | None:
    """The registration that an id's CREATED or CHANGED wrote; None if it cannot be read."""
    try:
        return read_registration(_data(registered))
    except KafkaException:
        return None


def has_filter(registered: Event) -> bool:
    """Whether an id's CREATED or CHANGED wrote a registration with a topic filter."""
    registration = registration_of(registered)
    return registration is not None and registration.wildcard


def topics_of(registered: Event, existing: Iterable[str]) -> list[str] | None:
    """Those of the existing topics that a registered member subscribes to, as Kafka 0.8.2 reads its registration
    (`wire.registration`); a filter leaves out internal topics.

    None if this is not known: the payload is not a registration, or Java refuses its filter, or the lab cannot evaluate
    it.
    """
    registration = registration_of(registered)
    if registration is None:
        return None
    names = list(existing)
    try:
        wanted = registration.streams(names)
    except KafkaException:
        return None
    return [topic for topic in names if topic in wanted]


class Timeline(Generic[T]):
    """What something in the registry was, from each zxid on."""

    def __init__(self) -> None:
        self._zxids: list[int] = []
        self._values: list[T] = []

    def put(self, event: Event, value: T) -> None:
        """From this event on. Events come in the registry's order."""
        self._zxids.append(event.zxid or 0)
        self._values.append(value)

    def at(self, zxid: int | None) -> tuple[int, T] | None:
        """(zxid, value) of the latest change up to a zxid; None if there was none, or if the zxid is not known."""
        place = 0 if zxid is None else bisect_right(self._zxids, zxid)
        return (self._zxids[place - 1], self._values[place - 1]) if place else None

    def value(self, zxid: int | None, default: T) -> T:
        """The value then; the default if there was none."""
        found = self.at(zxid)
        return default if found is None else found[1]

    def last(self, default: T) -> T:
        return self._values[-1] if self._values else default


def _data(event: Event) -> bytes:
    return str(event.of("data") or "").encode()
