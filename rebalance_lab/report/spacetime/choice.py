"""What a space-time diagram is about, and which beats and lanes it shows.

The subject is the first anomaly of a trial, else its first fault, else the first change of its group. Beats are shown
that matter and are near, as many as people can read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rebalance_lab.analysis.results import TrialOutcome
from rebalance_lab.history.events import Event, EventId, Kind, Layer
from rebalance_lab.report import glossary
from rebalance_lab.report.scene import Fault, Scene
from rebalance_lab.report.spacetime.arrows import Link, links_of
from rebalance_lab.report.spacetime.beats import CROWD, Beat, beat_of, fold_sessions, runs
from rebalance_lab.report.spans import Row, row_of
from rebalance_lab.report.text import seconds

#: Faults and sessions are shown with what they caused, everything else with what led to it.
AFTERMATH_US = 700_000
LEAD_US = 100_000
SHORT_US = 60_000
#: Of what an anomaly stands on, long before it, the moment itself is enough.
FOUNDATION_US = 4_000

_CAUSING = frozenset({Kind.FAULT_BEGAN, Kind.FAULT_ENDED, Kind.SESSION_CLOSED, Kind.EXPIRED, Kind.PHASE})


@dataclass(frozen=True, slots=True)
class Subject:
    """`keys`: the events that matter most, in the order of time; `witness`: those of them that prove an anomaly.
    `near`: time spans (µs) worth showing; `tight`: the most important of them, if too much happens. `zone`: the
    anomaly's own span, labelled. `row`: its partition."""

    title: str
    keys: tuple[Event, ...]
    witness: frozenset[EventId]
    near: tuple[tuple[int, int], ...]
    tight: tuple[tuple[int, int], ...]
    zone: tuple[int, int, str] | None
    row: Row | None


def subject_of(scene: Scene, wrong: Sequence[TrialOutcome]) -> Subject | None:
    """The subject of the trial's diagram; None if nothing happened to it. `wrong`: its anomalies."""
    known = {event.id: event for event in scene.events if event.layer is not Layer.OP or event.kind in _CAUSING}
    wanted = {each for outcome in wrong for each in outcome.witness}
    known |= {event.id: event for event in scene.events if event.id in wanted}
    proofs = []
    for outcome in wrong:
        witness = sorted((known[each] for each in outcome.witness if each in known), key=lambda event: event.at_us)
        if witness:
            proofs.append((witness[min(1, len(witness) - 1)].at_us, outcome, witness))
    if proofs:
        _, outcome, witness = min(proofs, key=_when)
        return _anomaly(
            scene, outcome, witness, [event for _, _, events in sorted(proofs, key=_when) for event in events]
        )
    spaced = any(event.kind is Kind.PHASE and event.of("change") for event in scene.events)
    if scene.harms and (not spaced or scene.harms[0] is scene.faults[0]):
        return _fault(scene, scene.harms[0])
    return _change(scene)


def _when(proof: tuple[int, TrialOutcome, list[Event]]) -> tuple[int, str]:
    return proof[0], proof[1].check


def _anomaly(scene: Scene, outcome: TrialOutcome, witness: list[Event], others: list[Event]) -> Subject:
    """`others`: the witnesses of all anomalies, for a partition if this one names none."""
    times = [scene.since_start(event) for event in witness]
    background = [event for event in _background(scene) if times[0] <= scene.since_start(event) <= times[-1]]
    background += _led_to(scene, times[0], times[-1])
    keys = sorted([*witness, *background], key=lambda event: (event.at_us, event.actor, event.n))
    # Of three or more events the first may be what the anomaly stands on, long before it.
    founded = len(times) > 2 and (outcome.check.endswith("overlap") or outcome.check == "unowned_window")
    begin_us = times[1] if founded else times[0]
    title = glossary.title(outcome.check)
    own = next((row_of(event) for event in witness if event.partition is not None), None)
    row = own or next((row_of(event) for event in others if event.partition is not None), None)
    zone = (begin_us, times[-1], f"{title.lower()} {seconds(times[-1] - begin_us)}") if times[-1] > begin_us else None
    tight = _near(scene, keys, until_us=times[-1] + LEAD_US, foundation=witness[0].id if founded else None)
    return Subject(
        title=f"Around the first anomaly: {title.lower()}" + ("" if own is None else f" on {own}"),
        keys=tuple(keys),
        witness=frozenset(event.id for event in witness),
        near=(*tight, (max(begin_us - LEAD_US, 0), max(min(times[-1] + LEAD_US, scene.closing_us), times[-1]))),
        tight=tight,
        zone=zone,
        row=row,
    )


def _led_to(scene: Scene, begin_us: int, end_us: int) -> list[Event]:
    """The last fault or change before an anomaly without one in its time, unless the group was at rest in between."""
    if any(begin_us <= fault.began_us <= end_us for fault in scene.faults):
        return []
    before = [fault for fault in scene.faults if fault.began_us < begin_us <= _rest_after(scene, fault.began_us)]
    return [event for fault in before[-1:] for event in scene.events if event.id == fault.event]


def _background(scene: Scene) -> list[Event]:
    """Faults, the ends of their victims' sessions, and the moments at which the victims learned of these."""
    victims = {fault.target for fault in scene.faults}
    ends = {end.event for end in scene.session_ends if end.name in victims}
    faults = {fault.event for fault in scene.faults}
    return [
        event
        for event in scene.events
        if event.id in faults
        or event.id in ends
        or (event.kind is Kind.FAULT_ENDED)
        or (event.kind is Kind.EXPIRED and event.actor in victims)
    ]


def _fault(scene: Scene, fault: Fault) -> Subject:
    last_us = fault.began_us if fault.ended_us is None else fault.ended_us
    keys = [
        event
        for event in _background(scene)
        if event.id == fault.event
        or (event.kind is not Kind.FAULT_BEGAN and fault.began_us <= scene.since_start(event) < scene.closing_us)
    ]
    near = _near(scene, keys, _rest_after(scene, last_us))
    title = f"Around the first fault: {fault.target} {fault.suffers}"
    return Subject(title, tuple(keys), frozenset(), near, near, None, None)


def _change(scene: Scene) -> Subject | None:
    """The first change after the group's first rest, until it is at rest again."""
    rested_us = min((scene.since_start(each) for each in scene.events if each.kind is Kind.REST_REACHED), default=0)
    change = next((each for each in scene.faults if each.began_us >= rested_us), None)
    if change is None:
        return None
    key = next(event for event in scene.events if event.id == change.event)
    near = ((max(change.began_us - LEAD_US, 0), _rest_after(scene, change.began_us)),)
    title = f"Around the first change: {change.target} {change.suffers}"
    return Subject(title, (key,), frozenset(), near, near, None, None)


def _rest_after(scene: Scene, at_us: int) -> int:
    rests = (scene.since_start(event) for event in scene.events if event.kind is Kind.REST_REACHED)
    return next((each for each in rests if each > at_us), scene.closing_us)


def _near(
    scene: Scene, keys: Sequence[Event], until_us: int, foundation: EventId | None = None
) -> tuple[tuple[int, int], ...]:
    near = []
    for event in keys:
        at_us = scene.since_start(event)
        lead_us, after_us = (5_000, AFTERMATH_US) if event.kind in _CAUSING else (LEAD_US, SHORT_US)
        if event.id == foundation:
            lead_us = after_us = FOUNDATION_US
        near.append((max(at_us - lead_us, 0), min(at_us + after_us, max(until_us, at_us))))
    return tuple(near)


# -- beats and lanes ------------------------------------------------------------------------------


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
    connected = [event.actor for event in scene.events if event.kind is Kind.CONNECTED]
    names += [actor for actor in connected if actor != RUNNER]  # nodes that are no members
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
