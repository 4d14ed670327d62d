"""Rebalance episodes of one history: from the first thing that happened in a group to the last
before rest.

A trial's rests (REST_REACHED, REST_MISSED) cut its time into *stretches*. What *happens* is a
trigger, an attempt or rebalance that begins, fails or ends, and a change of the group's
registrations and owners in the registry. A group to which something happens in a stretch has
an episode there. The runner learns of rest two back-offs after it began, so an episode ends
with the last thing that happened; only where no rest came does it last until waiting ended.

The registry's times may be 2 ms early (they are cut to milliseconds). A rest follows a quiet time, so
what the registry tells of just before a rest or a phase came after it: otherwise the first owner znode
that goes with the next change would make the episode before last until its rest.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from rebalance_lab.analysis.results import Episode
from rebalance_lab.analysis.trialwise.operations import groups_of_actors
from rebalance_lab.analysis.trialwise.ownership_sums import Window, add_ownership
from rebalance_lab.analysis.trialwise.registry_view import RegistryView
from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.checks.operations import committing, is_commit, requests
from rebalance_lab.history.events import Event, EventId, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import Interval
from rebalance_lab.history.views import CLOSING, beliefs, events_of, owners

#: The parts of a trial; the third is CLOSING, named as its phase.
ASSEMBLY, CHANGE = "assembly", "change"

_STEPS = frozenset(
    {
        Kind.REBALANCE_TRIGGERED,
        Kind.REBALANCE_BEGAN,
        Kind.ATTEMPT_BEGAN,
        Kind.ATTEMPT_FAILED,
        Kind.REBALANCE_ENDED,
    }
)
_WRITTEN = frozenset({Kind.CREATED, Kind.CHANGED, Kind.DELETED})
_RESTS = frozenset({Kind.REST_REACHED, Kind.REST_MISSED})
_ASKED = frozenset({Kind.INVOKED, Kind.OPERATIONS, Kind.WATCH_FIRED})
_KINDS = _STEPS | _WRITTEN | _RESTS | _ASKED | {Kind.PHASE, Kind.MEMBER_STARTED, Kind.NOTIFICATION_QUEUED}


@dataclass(slots=True)
class _Counted:
    """An episode in the making."""

    group: str
    stretch: int
    part: str = ASSEMBLY
    phase: str = ""
    begin_us: int | None = None  # None: so far nothing happened
    last_us: int = 0
    rebalancing: set[str] = field(default_factory=set)
    rebalances: int = 0
    attempts: int = 0
    failed_attempts: int = 0
    conflicts: int = 0
    notifications: int = 0
    watches: int = 0
    reads: int = 0
    writes: int = 0
    moved: int = 0

    def count(self, event: Event, *, commit: bool = False) -> None:
        match event.kind:
            case Kind.REBALANCE_BEGAN:
                self.rebalances += 1
                if event.member is not None:
                    self.rebalancing.add(event.member)
            case Kind.ATTEMPT_BEGAN:
                self.attempts += 1
            case Kind.ATTEMPT_FAILED:
                self.failed_attempts += 1
                self.conflicts += event.of("reason") == "conflict"
            case Kind.NOTIFICATION_QUEUED:
                self.notifications += 1
            case Kind.WATCH_FIRED:
                self.watches += 1
            case _:
                reads, writes = requests(event)
                self.reads += reads
                self.writes += 0 if commit else writes


@dataclass(slots=True)
class _Course:
    """A trial as its events go by."""

    group_of: dict[str, str]  # actor -> group
    committing: Mapping[str, str]  # the actors that commit offsets -> their group
    registry: RegistryView = field(default_factory=RegistryView)
    rests: list[Event] = field(default_factory=list)
    settled: bool = False
    phase: str = ""
    closing: bool = False
    topics: dict[str, set[str]] = field(default_factory=dict)  # group -> those its members subscribe to
    found: dict[tuple[str, int], _Counted] = field(default_factory=dict)
    written: dict[EventId, int] = field(default_factory=dict)  # the registry's events -> their stretch

    def of(self, group: str) -> _Counted:
        key = (group, len(self.rests))
        if key not in self.found:
            self.found[key] = _Counted(*key)
        return self.found[key]

    def happened(self, event: Event, group: str) -> None:
        counted = self.of(group)
        if counted.begin_us is None:
            counted.begin_us = event.at_us
            counted.part = CLOSING if self.closing else CHANGE if self.settled else ASSEMBLY
            counted.phase = self.phase
        counted.last_us = event.at_us
        counted.count(event)

    def feed(self, event: Event) -> None:
        kind, group = event.kind, event.group
        if kind in _ASKED:
            group = self.group_of.get(event.actor)
            if group is not None:
                self.of(group).count(event, commit=is_commit(event, self.committing))
        elif kind in _RESTS:
            self.rests.append(event)
            self.settled |= kind is Kind.REST_REACHED
        elif kind is Kind.PHASE:
            self.phase = str(event.of("name") or "")
            self.closing |= self.phase == CLOSING
        elif kind in _WRITTEN:
            self.written[event.id] = len(self.rests)
            self.registry.feed(event)
            if group is not None and event.member is not None:
                self.happened(event, group)
        elif group is not None:
            self._member_event(event, group)

    def _member_event(self, event: Event, group: str) -> None:
        if event.kind is Kind.MEMBER_STARTED:
            streams = event.of("streams")
            if isinstance(streams, dict):
                self.topics.setdefault(group, set()).update(map(str, streams))
        elif event.kind is Kind.NOTIFICATION_QUEUED:
            self.of(group).count(event)
        elif event.kind in _STEPS:
            self.happened(event, group)


def episodes(history: History) -> list[Episode]:
    """The episodes of a trial, by group and time.

    Operations and watches count for the group of the member whose actor made them. Partitions
    are those of the topics that the group's members subscribe to or ever owned, each from when
    the topic's znode told it.
    """
    course = _Course(groups_of_actors(history), committing(history))
    for event in _in_order(history):
        course.feed(event)
    registry, belief = owners(history), beliefs(history)
    _count_moves(course, registry)
    happened = sorted((each for each in course.found.values() if each.begin_us is not None), key=_key)
    windows = [Window(each.group, each.begin_us or 0, _end_us(each, course, history)) for each in happened]
    add_ownership(windows, _places(course, [*registry, *belief]), registry, belief)
    return list(_numbered(history.trial.id, zip(happened, windows, strict=True), course))


def _in_order(history: History) -> list[Event]:
    """The events, what the registry tells of just before a rest or a phase after it."""
    events = events_of(history, *sorted(_KINDS))
    marks = [event.at_us for event in events if event.kind in _RESTS or event.kind is Kind.PHASE]

    def moment(event: Event) -> tuple[int, bool]:
        if event.kind in _WRITTEN:
            near = bisect_right(marks, event.at_us + TOLERANCE_US)
            if near and marks[near - 1] >= event.at_us:
                return (marks[near - 1], True)
        return (event.at_us, False)

    return sorted(events, key=moment)


def _key(counted: _Counted) -> tuple[str, int]:
    return (counted.group, counted.stretch)


def _rested(counted: _Counted, course: _Course) -> bool:
    rest = course.rests[counted.stretch] if counted.stretch < len(course.rests) else None
    return rest is not None and rest.kind is Kind.REST_REACHED


def _end_us(counted: _Counted, course: _Course, history: History) -> int:
    if _rested(counted, course):
        return counted.last_us
    missed = counted.stretch < len(course.rests)
    return course.rests[counted.stretch].at_us if missed else history.events[-1].at_us


def _count_moves(course: _Course, registry: Iterable[Interval]) -> None:
    """How often a partition got another owner than its last, in the stretch in which it did."""
    owner: dict[tuple[str, str, int], str] = {}
    for each in sorted(registry, key=_begin):
        before = owner.get(each.place)
        owner[each.place] = each.member
        key = (each.group, course.written[each.begin])
        if before not in (None, each.member) and key in course.found:
            course.found[key].moved += 1


def _begin(interval: Interval) -> tuple[int, str, int]:
    actor, n = interval.begin
    return (interval.begin_us, actor, n)


def _places(course: _Course, owned: Iterable[Interval]) -> dict[str, dict[tuple[str, int], int]]:
    """group -> (topic, partition) -> since when, in µs, it is there to be owned."""
    places: dict[str, dict[tuple[str, int], int]] = {}
    topics = {group: set(subscribed) for group, subscribed in course.topics.items()}
    for each in owned:
        topics.setdefault(each.group, set()).add(each.topic)
        places.setdefault(each.group, {})[each.topic, each.partition] = 0
    for group, subscribed in topics.items():
        for topic in sorted(subscribed):
            told = course.registry.partitions.get(topic, {})
            places.setdefault(group, {}).update({(topic, number): since for number, since in told.items()})
    return places


def _numbered(trial: str, found: Iterable[tuple[_Counted, Window]], course: _Course) -> Iterator[Episode]:
    numbers: dict[str, int] = {}
    for counted, window in found:
        number = numbers.get(counted.group, 0)
        numbers[counted.group] = number + 1
        yield Episode(
            trial=trial,
            group=counted.group,
            number=number,
            part=counted.part,
            phase=counted.phase,
            begin_us=window.begin_us,
            end_us=window.end_us,
            rested=_rested(counted, course),
            members=len(counted.rebalancing),
            rebalances=counted.rebalances,
            attempts=counted.attempts,
            failed_attempts=counted.failed_attempts,
            conflicts=counted.conflicts,
            notifications=counted.notifications,
            watches=counted.watches,
            reads=counted.reads,
            writes=counted.writes,
            unowned_us=window.unowned_us,
            doubly_owned_us=window.doubly_owned_us,
            moved=counted.moved,
        )
