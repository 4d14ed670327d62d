"""Which beats and lanes a diagram shows: those that matter and are near, as many as people can read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.report.scene import Scene
from rebalance_lab.report.spacetime.arrows import Link, links_of
from rebalance_lab.report.spacetime.beats import CROWD, Beat, beat_of, fold_sessions, runs
from rebalance_lab.report.spacetime.subject import Subject

#: Marks of one diagram.
BEATS = 120
#: Members with a lane of their own, where all fit and where they do not.
LANES = 6
LANES_BESIDE_CROWD = 5

RUNNER, REGISTRY = "runner", "zookeeper"


@dataclass(frozen=True, slots=True)
class Cast:
    """The lanes, from left to right; `crowd`: members that share one."""

    lanes: tuple[str, ...]
    crowd: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """What is drawn. `left_out`: the number of marks for which there is no room. `places`: the beat of each event."""

    cast: Cast
    beats: tuple[Beat, ...]
    links: tuple[Link, ...]
    left_out: int


def choose_beats(scene: Scene, subject: Subject) -> Choice:
    """The beats of a subject in the order of time, and their links: everything near, or, if that is too much, what
    matters most."""
    for near in (subject.near, subject.tight):
        events = _within(scene, near)
        cast = _cast(scene, subject, events)
        drawn = _drawn(scene, subject, near, events, cast)
        if len(drawn) <= BEATS:
            break
    ranked = sorted(drawn, key=lambda beat: (beat.weight, _far(subject, beat), beat.at_us))
    shown = sorted(ranked[:BEATS], key=_in_time)
    links = links_of(scene, shown, events)
    shown = _with_sources(shown, ranked[BEATS:], links)
    drawn_ids = {each for beat in shown for each in beat.ids}
    used = {beat.actor for beat in shown}
    return Choice(
        Cast(tuple(lane for lane in cast.lanes if lane in used or lane != RUNNER), cast.crowd),
        tuple(shown),
        tuple(link for link in links if link.source in drawn_ids),
        len(drawn) - len(shown),
    )


def _within(scene: Scene, near: Sequence[tuple[int, int]]) -> list[Event]:
    """All events from the begin of the first span to the end of the last, as sources lie in between."""
    begin_us, end_us = min(begin for begin, _ in near), max(end for _, end in near)
    return [event for event in scene.events if begin_us <= scene.since_start(event) <= end_us]


def _drawn(
    scene: Scene, subject: Subject, near: Sequence[tuple[int, int]], events: Sequence[Event], cast: Cast
) -> list[Beat]:
    keys = {event.id for event in subject.keys}
    beats = []
    for event in events:
        beat = beat_of(scene, event, event.id in subject.witness, cast.crowd)
        if beat is not None and (event.id in keys or any(begin <= beat.at_us <= end for begin, end in near)):
            beats.append(replace(beat, weight=0) if event.id in keys else beat)
    return runs([_in_lane(beat, cast) for beat in fold_sessions(beats)])


def _in_time(beat: Beat) -> tuple[int, str, int]:
    """In the order of the history; events of one instant by each actor's own count."""
    return (beat.at_us, beat.events[0].actor, beat.events[0].n)


def _far(subject: Subject, beat: Beat) -> int:
    """µs to the nearest key event."""
    origin = subject.near  # each begins a little before its key
    return min(abs(begin - beat.at_us) for begin, _ in origin)


def _with_sources(shown: list[Beat], rest: Sequence[Beat], links: Sequence[Link]) -> list[Beat]:
    """Adds the beats from which arrows come."""
    sources = {link.source for link in links}
    more = [beat for beat in rest if sources & set(beat.ids)]
    return sorted([*shown, *more], key=_in_time)


def _in_lane(beat: Beat, cast: Cast) -> Beat:
    return replace(beat, actor=CROWD) if beat.actor in cast.crowd else beat


def _cast(scene: Scene, subject: Subject, events: Sequence[Event]) -> Cast:
    """Fault targets to the left of ZooKeeper, others to the right, the crowd last."""
    names = [person.name for person in scene.people]
    # Of members with one id only the first is among the people; each acts for itself. A history that is not whole
    # may lack the start of a member.
    acting = {Kind.MEMBER_STARTED, Kind.OWNED, Kind.WORKED}
    names += [event.actor for event in scene.events if event.kind in acting and event.actor not in names]
    names = list(dict.fromkeys(names))
    targets = [event.of("target") for event in subject.keys if event.kind is Kind.FAULT_BEGAN]
    concerned = [*targets, *(scene.name(event.member) for event in subject.keys if event.member is not None)]
    busy = Counter(event.actor for event in events if event.kind in {Kind.ATTEMPT_FAILED, Kind.FAILED_OP, Kind.EXPIRED})
    ranked = sorted(names, key=lambda name: (_place(concerned, name), -busy[name], names.index(name)))
    own = ranked if len(names) <= LANES else ranked[:LANES_BESIDE_CROWD]
    victims = [name for name in names if name in own and name in targets]
    others = [name for name in names if name in own and name not in targets]
    crowd = tuple(name for name in names if name not in own)
    return Cast((RUNNER, *victims, REGISTRY, *others, *([CROWD] if crowd else [])), crowd)


def _place(names: Sequence[object], name: str) -> int:
    return names.index(name) if name in names else len(names)
