"""O3, unowned window: a partition has no owner for longer than a rebalance may take.

A partition is *due*, and so must have an owner, while its topic's znode lists it and at least one live member of a
group subscribes to the topic, according to its registration. A member is live from its first REBALANCE_ENDED with
outcome ok until its MEMBER_CLOSED or the FAULT_BEGAN of its kill, also while it is paused; it keeps its last
registration for so long, even if its session has ended. Windows after the phase `closing` do not count. There are two
vantage points, each with its bound:

- *registry*: there is no owner znode; bound: a rebalance (`bounds`), which is what 0.8.2 spends on one before it gives
  up;
- *belief*: no member believes that it owns the partition; bound: expiry (a dead member's session lives that long) and
  a rebalance.

A bound uses the settings of the members that the window is about. The rebalance is that of the members that wanted the
partition in a rebalance during the window, or claimed it at its end; if there are none, of all members of the group.
The expiry also covers members that were absent or disturbed at some time in the window.

A registry window that is open at a REST_REACHED is too long whatever its length: nothing is under way that could end
it. Both bounds allow 2 ms more, because moments of two layers are compared. If the wall clock drifted by more than
that, the registry's windows are measured but none is called too long, and the trial is unknown unless belief shows one:
belief and life are both recorded by the host's one clock. Claim Z9 depends on this check. A group that lived no longer
than the registry's bound shows nothing, unless it came to rest with all partitions owned: unknown.

Witness: the event that left the partition without owner (or that made it due: the end of a rebalance, or the change of
a topic or a registration), the event that ended the window (or the phase `closing`), and the event from which it was
due.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rebalance_lab.checks.bounds import bounds, bounds_of, lacking
from rebalance_lab.checks.faults import TOLERANCE_US, clock_drifted
from rebalance_lab.checks.members import MemberLife, Rebalance, member_lives
from rebalance_lab.checks.model import ZK, Check, Finding, Planted, not_violated, unknown, violated
from rebalance_lab.checks.phases import closing_us
from rebalance_lab.checks.registry_state import Place, Registered, partitions_of, topic_changes, topics_of
from rebalance_lab.checks.stretches import Stretch, gaps, parts, union
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.events import Event, EventId, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import Interval
from rebalance_lab.history.views import beliefs, events_of, grouped, once, owners, registry


@dataclass(frozen=True, slots=True)
class _Window:
    """A partition without owner while it was `due`. `at_rest`: whether it was so when the group rested. `taker`: the
    member that owned it at the end, None if there is none."""

    layer: Layer
    place: Place
    stretch: Stretch
    due: Stretch
    at_rest: bool
    taker: str | None

    @property
    def length_us(self) -> int:
        return self.stretch.length_us


def judge(history: History) -> Finding:
    """Measures: `count` of windows above their bound; for the registry `longest_us`, `total_us`
    (partition-microseconds) and `bound_us` (of the most patient member); for belief the same with `belief`."""
    missing = lacking(history)
    if missing is not None:
        return unknown(history, missing)
    limits = bounds(history)
    registry = _windows(history, Layer.REGISTRY, owners(history))
    belief = _windows(history, Layer.BELIEF, beliefs(history))
    too_long = [_too_long(history, registry) if not clock_drifted(history) else [], _too_long(history, belief)]
    numbers = {
        "count": sum(map(len, too_long)),
        "longest_us": max((window.length_us for window in registry), default=0),
        "total_us": sum(window.length_us for window in registry),
        "bound_us": limits.rebalance_us,
        "longest_belief_us": max((window.length_us for window in belief), default=0),
        "total_belief_us": sum(window.length_us for window in belief),
        "belief_bound_us": limits.expiry_us + limits.rebalance_us,
    }
    for found in too_long:
        if found:
            return _violated(history, max(found, key=lambda window: window.length_us), numbers)
    why = "no partition was without an owner for longer than the bound"
    return not_violated(history, why, numbers, vacuous=_vacuous(history), across_layers=True)


def _vacuous(history: History) -> str | None:
    """Why no window could have been too long."""
    found = due(history)
    if found.doubts:
        return "; ".join(found.doubts)
    stretches = [stretch for its in found.places.values() for stretch in its]
    longest_us = max(stretch.length_us for stretch in stretches)
    bound_us = bounds(history).rebalance_us
    # A partition that was due at a rest had an owner then, or its window would be too long. Earlier windows had ended,
    # and nothing was under way that could cause new ones.
    rests = events_of(history, Kind.REST_REACHED)
    rested = any(stretch.begin_us <= rest.at_us <= stretch.end_us for rest in rests for stretch in stretches)
    if rested or longest_us > bound_us + TOLERANCE_US:
        return None
    return f"the group was alive for only {seconds(longest_us)}; the bound is {seconds(bound_us)}"


def _violated(history: History, window: _Window, numbers: dict[str, int]) -> Finding:
    _, topic, partition = window.place
    name, length = f"{topic}/{partition}", seconds(window.length_us)
    limit = "the group was at rest in it" if window.at_rest else f"the bound is {seconds(_bound_us(history, window))}"
    if window.layer is Layer.REGISTRY:
        why = f"{name} had no owner in the registry for {length} while a member was alive; {limit}"
    else:
        why = f"no member believed that it owned {name} for {length} while a member was alive; {limit}"
    return violated(why, (window.due.begin, window.stretch.begin, window.stretch.end), numbers)


def _windows(history: History, layer: Layer, intervals: Iterable[Interval]) -> list[_Window]:
    rests = events_of(history, Kind.REST_REACHED) if layer is Layer.REGISTRY else []
    owned = grouped(intervals, lambda one: one.place)
    found = []
    for place, stretches in due(history).places.items():
        claims = owned.get(place, [])
        covered = union(Stretch(one.begin_us, one.end_us, one.begin, one.end) for one in claims)
        takers: dict[EventId | None, str] = {claim.begin: claim.member for claim in claims}
        for stretch in stretches:
            for gap in gaps(covered, stretch):
                # A window that began within 2 ms of a rest came after it: a rest follows a quiet time.
                at_rest = any(gap.begin_us + TOLERANCE_US < rest.at_us <= gap.end_us for rest in rests)
                found.append(_Window(layer, place, gap, stretch, at_rest, takers.get(gap.end)))
    return found


# -- the bound of a window --------------------------------------------------------------------------


def _too_long(history: History, windows: Iterable[_Window]) -> list[_Window]:
    """The windows that exceed their bound. Most are within the bound of the least patient member, which is cheap to
    check."""
    lives = member_lives(history)
    least_us = min((bounds_of(history, frozenset({life.actor})).rebalance_us for life in lives), default=0)
    return [
        window
        for window in windows
        if window.at_rest
        or (window.length_us - TOLERANCE_US > least_us and window.length_us - TOLERANCE_US > _bound_us(history, window))
    ]


def _bound_us(history: History, window: _Window) -> int:
    group = [life for life in member_lives(history) if life.group == window.place[0]]
    takers = frozenset(
        life.actor for life in group if life.member == window.taker or _wanted(history, life, window)
    ) or frozenset(life.actor for life in group)
    rebalance_us = bounds_of(history, takers).rebalance_us
    if window.layer is Layer.REGISTRY:
        return rebalance_us
    stretch = window.stretch
    away = {life.actor for life in group if not life.undisturbed(stretch.begin_us, stretch.end_us)}
    return bounds_of(history, takers | away).expiry_us + rebalance_us


def _wanted(history: History, life: MemberLife, window: _Window) -> bool:
    """Whether a member decided to own the partition in a rebalance that ran at some time in the window."""
    begin_us, end_us = window.stretch.begin_us, window.stretch.end_us
    return any(
        rebalance.began.at_us <= end_us and (rebalance.ended is None or rebalance.ended.at_us >= begin_us)
        for rebalance in _wants(history).get((*life.key, window.place), [])
    )


@once
def _wants(history: History) -> dict[tuple[str, str, Place], list[Rebalance]]:
    """The rebalances in which a member (actor, name) decided to own a partition."""
    found: dict[tuple[str, str, Place], list[Rebalance]] = {}
    for life in member_lives(history):
        for rebalance in life.rebalances:
            for wanted in dict.fromkeys(pair for attempt in rebalance.attempts for pair in attempt.wants):
                found.setdefault((*life.key, (life.group, *wanted)), []).append(rebalance)
    return found


# -- which partitions must have an owner, and when -----------------------------------------------


@dataclass(frozen=True, slots=True)
class Due:
    """`places`: when each partition was due, until the phase `closing`; a stretch begins with the event that made it
    due. `doubts`: why others may have been due."""

    places: Mapping[Place, Sequence[Stretch]]
    doubts: Sequence[str]


@once
def due(history: History) -> Due:
    """The partitions that were due in a history."""
    alive = _alive(history)
    if not alive:
        return Due({}, ["no rebalance ever succeeded, so no partition was due"])
    existed = _partitions(history)
    topics = sorted({topic for topic, _ in existed})
    found: dict[Place, list[Stretch]] = {}
    registrations = _registrations(history)
    known = {(event.group or "", event.member or "") for event, _ in registrations}
    doubts = [f"{name} was alive but never registered" for group, name in alive if (group, name) not in known]
    for event, registered in registrations:
        group = event.group or ""
        there = parts(union(alive.get((group, event.member or ""), ())), [registered])
        wanted = topics_of(event, topics)
        if wanted is None and there:
            doubts.append(f"the subscription of {event.member} cannot be read from {event.of('path')}")
        for (topic, partition), existence in existed.items():
            if topic in (wanted or ()):
                found.setdefault((group, topic, partition), []).extend(parts(there, existence))
    places = {place: union(stretches) for place, stretches in sorted(found.items()) if stretches}
    if not places and not doubts:
        doubts.append("no live member was registered for a topic that existed")
    return Due(places, doubts)


def _alive(history: History) -> dict[Registered, list[Stretch]]:
    """When each member of a group was alive, from its first REBALANCE_ENDED with outcome ok."""
    end_us, end = closing_us(history)
    found: dict[Registered, list[Stretch]] = {}
    for life in member_lives(history):
        begin = life.settled
        gone = life.gone if life.gone is not None and life.gone.at_us <= end_us else None
        until_us = end_us if gone is None else gone.at_us
        if begin is not None and begin.at_us < end_us and begin.at_us <= until_us:
            stretch = Stretch(begin.at_us, until_us, begin.id, end if gone is None else gone.id)
            found.setdefault((life.group, life.member), []).append(stretch)
    return found


def _registrations(history: History) -> list[tuple[Event, Stretch]]:
    """Each registration with the time until its member's next CREATED. A later CHANGED of the id (which 0.8.2 never
    makes) does not end a subscription."""
    end_us, end = closing_us(history)
    of_member: dict[Registered, list[Event]] = {}
    for event in registry(history):
        if event.kind in (Kind.CREATED, Kind.CHANGED) and event.member is not None and event.partition is None:
            of_member.setdefault((event.group or "", event.member), []).append(event)
    found = []
    for events in of_member.values():
        for index, event in enumerate(events):
            later = next((each for each in events[index + 1 :] if each.kind is Kind.CREATED), None)
            until = Stretch(event.at_us, end_us, event.id, end) if later is None else _until(event, later)
            found.append((event, until))
    return found


def _partitions(history: History) -> dict[tuple[str, int], list[Stretch]]:
    """When each partition existed, by (topic, partition)."""
    end_us, end = closing_us(history)
    since: dict[tuple[str, int], Event] = {}
    found: dict[tuple[str, int], list[Stretch]] = {}
    for topic, event in topic_changes(history):
        listed = () if event.kind is Kind.DELETED else partitions_of(event)
        for place in [place for place in since if place[0] == topic and place[1] not in listed]:
            found.setdefault(place, []).append(_until(since.pop(place), event))
        for partition in listed:
            since.setdefault((topic, partition), event)
    for place, begin in since.items():
        found.setdefault(place, []).append(Stretch(begin.at_us, max(begin.at_us, end_us), begin.id, end))
    return found


def _until(begin: Event, end: Event) -> Stretch:
    """From one event to another of the registry, whose clock may step back."""
    return Stretch(begin.at_us, max(begin.at_us, end.at_us), begin.id, end.id)


CHECK = Check(
    name="unowned_window",
    compares=(Layer.REGISTRY, Layer.BELIEF),
    meaning="A partition had no owner for longer than a rebalance may take, while a member was alive.",
    together=(
        "Members are alive and the group has had enough time, but the partition still has no owner. Its messages wait."
    ),
    plants=(Planted("never-claim-last", "zombie", control=True),),
    judge=judge,
    applies_to=(ZK,),
)
