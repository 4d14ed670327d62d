"""Due: which partitions must have an owner, and when.

A partition is due while at least one member of a group is alive that subscribes to its topic. The topic's znode says
whether the partition exists, the member's registration what it subscribes to. A member is alive from its first
REBALANCE_ENDED with outcome ok until its MEMBER_CLOSED or the FAULT_BEGAN of its kill. It keeps its last
registration while it is alive: a paused member, whose session may have ended, counts as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rebalance_lab.checks.groups import Place, Registered, partitions_of, topic_changes, topics_of
from rebalance_lab.checks.lives import lives
from rebalance_lab.checks.scope import closing_us
from rebalance_lab.checks.stretches import Stretch, common, union
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import once, registry


@dataclass(frozen=True, slots=True)
class Due:
    """`places`: when each partition was due, until the phase `closing`; a stretch begins with the event that made
    it due. `doubts`: why these may not be all."""

    places: Mapping[Place, Sequence[Stretch]]
    doubts: Sequence[str]


@once
def due(history: History) -> Due:
    """The partitions that were due in a history."""
    alive = _alive(history)
    if not alive:
        return Due({}, ["no rebalance ever succeeded, so no window was looked at"])
    existed = _partitions(history)
    topics = sorted({topic for topic, _ in existed})
    found: dict[Place, list[Stretch]] = {}
    registrations = _registrations(history)
    known = {(event.group or "", event.member or "") for event, _ in registrations}
    doubts = [f"{name} lived and never registered" for group, name in alive if (group, name) not in known]
    for event, registered in registrations:
        group = event.group or ""
        there = _parts(union(alive.get((group, event.member or ""), ())), [registered])
        wanted = topics_of(event, topics)
        if wanted is None and there:
            doubts.append(f"what {event.member} subscribes to cannot be read from {event.of('path')}")
        for (topic, partition), existence in existed.items():
            if topic in (wanted or ()):
                found.setdefault((group, topic, partition), []).extend(_parts(there, existence))
    places = {place: union(stretches) for place, stretches in sorted(found.items()) if stretches}
    if not places and not doubts:
        doubts.append("no member that lived was registered for a topic that existed")
    return Due(places, doubts)


def _parts(ones: Sequence[Stretch], others: Sequence[Stretch]) -> list[Stretch]:
    return [part for one in ones for other in others if (part := common(one, other)) is not None]


def _alive(history: History) -> dict[Registered, list[Stretch]]:
    """When each member of a group was alive; begins with the REBALANCE_ENDED that made it so."""
    end_us, end = closing_us(history)
    found: dict[Registered, list[Stretch]] = {}
    for life in lives(history):
        begin = life.settled
        gone = life.gone if life.gone is not None and life.gone.at_us <= end_us else None
        until_us = end_us if gone is None else gone.at_us
        if begin is not None and begin.at_us < end_us and begin.at_us <= until_us:
            stretch = Stretch(begin.at_us, until_us, begin.id, end if gone is None else gone.id)
            found.setdefault((life.group, life.member), []).append(stretch)
    return found


def _registrations(history: History) -> list[tuple[Event, Stretch]]:
    """Each registration with the time until its member's next CREATED. A member says what it reads when it registers:
    an id that it changes later (which 0.8.2 never does) takes nothing back."""
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
