"""The rebalance episodes of one history: how a group went from one rest to the next.

The rests of a trial (REST_REACHED, REST_MISSED) cut its time into *stretches*. A group has an episode in each stretch
in which something happens to it: a trigger; a rebalance or an attempt that begins, fails or ends; a change of its
registrations or owners in the registry. The episode lasts from the first of these events to the last: the runner
learns of rest only two back-offs after it began. If rest was missed, it lasts until the runner gave up waiting.

The registry's times may be 2 ms early, because they are cut to milliseconds. A rest follows a quiet time, so an event
of the registry just before a rest or a phase really came after it. Otherwise the first owner znode that is deleted in
the next change would make the episode before it last until its rest.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rebalance_lab.analysis.results import Episode
from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.checks.operations import committing, is_commit, requests
from rebalance_lab.checks.registry_state import partitions_of, topic_of
from rebalance_lab.history.events import Event, EventId, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import Interval
from rebalance_lab.history.rebalances import AttemptFailure
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


#: Fields of an Episode that are taken from _Counted unchanged.
_COUNTS = (
    *("part", "phase", "rebalances", "attempts", "failed_attempts", "conflicts", "notifications"),
    *("watches", "reads", "writes", "moved"),
)


@dataclass(slots=True)
class _Counted:
    """An episode in the making."""

    group: str
    stretch: int
    part: str = ASSEMBLY
    phase: str = ""
    begin_us: int | None = None  # None: nothing has happened yet
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
                self.conflicts += event.of("reason") == AttemptFailure.CONFLICT
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
    """The state of a trial while its events are read in order."""

    group_of: dict[str, str]  # actor -> group
    committing: Mapping[str, str]  # actor that commits offsets -> its group
    partitions: dict[str, dict[int, int]] = field(default_factory=dict)  # topic -> partition -> when first listed, µs
    rests: list[Event] = field(default_factory=list)
    settled: bool = False
    phase: str = ""
    closing: bool = False
    topics: dict[str, set[str]] = field(default_factory=dict)  # group -> topics to which its members subscribe
    found: dict[tuple[str, int], _Counted] = field(default_factory=dict)
    written: dict[EventId, int] = field(default_factory=dict)  # event of the registry -> its stretch

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
            self._listed(event)
            if group is not None and event.member is not None:
                self.happened(event, group)
        elif group is not None:
            self._member_event(event, group)

    def _listed(self, event: Event) -> None:
        """Note the partitions that a topic's znode lists. Those of a deleted topic stay, as they could be owned."""
        topic = topic_of(event)
        if topic is not None and event.kind is not Kind.DELETED:
            known = self.partitions.setdefault(topic, {})
            for number in partitions_of(event):
                known.setdefault(number, event.at_us)

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

    Operations and watches count for the group of the member whose actor made them. The partitions are those of the
    topics to which the group's members subscribe and those that they ever owned, each from the moment at which the
    topic's znode first listed it.
    """
    course = _Course(_groups_of_actors(history), committing(history))
    for event in _in_order(history):
        course.feed(event)
    registry, belief = owners(history), beliefs(history)
    _count_moves(course, registry)
    happened = sorted((each for each in course.found.values() if each.begin_us is not None), key=_key)
    windows = [Window(each.group, each.begin_us or 0, _end_us(each, course, history)) for each in happened]
    add_ownership(windows, _places(course, [*registry, *belief]), registry, belief)
    return list(_numbered(history.trial.id, zip(happened, windows, strict=True), course))


def _groups_of_actors(history: History) -> dict[str, str]:
    """actor -> group of the first member that it started. Events of sessions name no group."""
    found: dict[str, str] = {}
    for event in events_of(history, Kind.MEMBER_STARTED):
        if event.group is not None:
            found.setdefault(event.actor, event.group)
    return found


def _in_order(history: History) -> list[Event]:
    """The events; those of the registry that seem to come just before a rest or a phase are put after it."""
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
    """Count the partitions that got another owner than their last, in the stretch in which they got it."""
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
    """group -> (topic, partition) -> when it first existed, in µs."""
    places: dict[str, dict[tuple[str, int], int]] = {}
    topics = {group: set(subscribed) for group, subscribed in course.topics.items()}
    for each in owned:
        topics.setdefault(each.group, set()).add(each.topic)
        places.setdefault(each.group, {})[each.topic, each.partition] = 0
    for group, subscribed in topics.items():
        for topic in sorted(subscribed):
            listed = course.partitions.get(topic, {})
            places.setdefault(group, {}).update({(topic, number): since for number, since in listed.items()})
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
            begin_us=window.begin_us,
            end_us=window.end_us,
            rested=_rested(counted, course),
            members=len(counted.rebalancing),
            unowned_us=window.unowned_us,
            doubly_owned_us=window.doubly_owned_us,
            **{name: getattr(counted, name) for name in _COUNTS},
        )


# -- partition-time without an owner, and with several -------------------------------------------

#: group -> (topic, partition) -> when it first existed, in µs.
Places = Mapping[str, Mapping[tuple[str, int], int]]


@dataclass(slots=True)
class Window:
    """A time span of a group; spans of one group do not overlap. The sums are in partition-µs."""

    group: str
    begin_us: int
    end_us: int
    unowned_us: int = 0
    doubly_owned_us: int = 0


def add_ownership(
    windows: Sequence[Window], places: Places, registry: Iterable[Interval], belief: Iterable[Interval]
) -> None:
    """Set the sums of `windows`, which are sorted by group and time. *Unowned* is the time in which an existing
    partition has no owner in the registry. *Doubly owned* is the time in which several members believe that they own
    a partition; each member above the first counts."""
    for window in windows:
        since = places.get(window.group, {}).values()
        window.unowned_us = sum(max(0, window.end_us - max(window.begin_us, begin)) for begin in since)
    for window, fresh_us, _ in _clipped(windows, registry, places):
        window.unowned_us -= fresh_us
    for window, fresh_us, length_us in _clipped(windows, belief, {}):
        window.doubly_owned_us += length_us - fresh_us


def _clipped(
    windows: Sequence[Window], intervals: Iterable[Interval], places: Places
) -> Iterator[tuple[Window, int, int]]:
    """Each interval in each window that it overlaps, with two lengths in the window: of its *fresh* part, which no
    earlier interval covers and in which its place exists, and of all of it."""
    of_group: dict[str, list[Window]] = {}
    for window in windows:
        of_group.setdefault(window.group, []).append(window)
    ends = {group: [window.end_us for window in found] for group, found in of_group.items()}
    reached: dict[tuple[str, str, int], int] = {}
    for each in sorted(intervals, key=lambda interval: (interval.begin_us, interval.end_us)):
        since_us = places.get(each.group, {}).get((each.topic, each.partition), 0)
        covered_us = max(each.begin_us, since_us, reached.get(each.place, 0))
        reached[each.place] = max(each.end_us, covered_us)
        found = of_group.get(each.group, [])
        for window in found[bisect_right(ends.get(each.group, []), each.begin_us) :]:
            if window.begin_us >= each.end_us:
                break
            high = min(each.end_us, window.end_us)
            yield window, max(0, high - max(covered_us, window.begin_us)), high - max(each.begin_us, window.begin_us)
