"""What a space-time diagram is about: the first anomaly of a trial, else its first fault, else
the first change of its group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rebalance_lab.analysis.results import TrialOutcome
from rebalance_lab.history.events import Event, EventId, Kind, Layer
from rebalance_lab.report import glossary
from rebalance_lab.report.scene import Scene
from rebalance_lab.report.spans import Row
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
    """`keys`: the events that make the matter, in time; `witness`: those of them that prove an
    anomaly; `near`: stretches of µs worth showing; `zone`: the anomaly's own stretch, labelled;
    `row`: the partition it is about."""

    title: str
    keys: tuple[Event, ...]
    witness: frozenset[EventId]
    near: tuple[tuple[int, int], ...]
    zone: tuple[int, int, str] | None
    row: Row | None

    def distance_us(self, at_us: int) -> int:
        """How far a moment is from the nearest stretch worth showing; 0 within one."""
        return min(max(begin - at_us, at_us - end, 0) for begin, end in self.near)


def subject_of(scene: Scene, wrong: Sequence[TrialOutcome]) -> Subject | None:
    """What the trial's diagram is about, None where nothing happened to it. `wrong`: its anomalies."""
    known = {event.id: event for event in scene.events if event.layer is not Layer.OP or event.kind in _CAUSING}
    wanted = {each for outcome in wrong for each in outcome.witness}
    known |= {event.id: event for event in scene.events if event.id in wanted}
    proofs = []
    for outcome in wrong:
        witness = sorted((known[each] for each in outcome.witness if each in known), key=lambda event: event.at_us)
        if witness:
            proofs.append((witness[min(1, len(witness) - 1)].at_us, outcome, witness))
    if proofs:
        _, outcome, witness = min(proofs, key=lambda each: (each[0], each[1].check))
        return _anomaly(scene, outcome, witness)
    if scene.faults:
        return _fault(scene)
    return _change(scene)


def _anomaly(scene: Scene, outcome: TrialOutcome, witness: list[Event]) -> Subject:
    times = [scene.since_start(event) for event in witness]
    background = [event for event in _background(scene) if times[0] <= scene.since_start(event) <= times[-1]]
    keys = sorted([*witness, *background], key=lambda event: (event.at_us, event.actor, event.n))
    begin_us = times[1] if len(times) > 2 else times[0]
    title = glossary.title(outcome.check)
    row = next((_row(event) for event in witness if event.partition is not None), None)
    zone = (begin_us, times[-1], f"{title.lower()} {seconds(times[-1] - begin_us)}") if times[-1] > begin_us else None
    return Subject(
        title=f"Around the first anomaly: {title.lower()}" + ("" if row is None else f" on {row}"),
        keys=tuple(keys),
        witness=frozenset(event.id for event in witness),
        near=_near(scene, keys, until_us=times[-1] + LEAD_US, foundation=witness[0].id if len(witness) > 2 else None),
        zone=zone,
        row=row,
    )


def _background(scene: Scene) -> list[Event]:
    """Faults, the ends of their victims' sessions, and when these learned of it."""
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


def _fault(scene: Scene) -> Subject:
    fault = scene.faults[0]
    last_us = fault.began_us if fault.ended_us is None else fault.ended_us
    keys = [
        event
        for event in _background(scene)
        if event.id == fault.event
        or (event.kind is not Kind.FAULT_BEGAN and fault.began_us <= scene.since_start(event) < scene.closing_us)
    ]
    rests = (scene.since_start(event) for event in scene.events if event.kind is Kind.REST_REACHED)
    until_us = next((at for at in rests if at > last_us), scene.closing_us)
    name = glossary.fault_words(fault.name).noun
    return Subject(
        f"Around the first fault: {name} of {fault.target}",
        tuple(keys),
        frozenset(),
        _near(scene, keys, until_us),
        None,
        None,
    )


def _change(scene: Scene) -> Subject | None:
    """The first spaced change after the group's first rest."""
    change = next((event for event in scene.events if event.kind is Kind.PHASE and event.of("change")), None)
    if change is None:
        return None
    begin_us = scene.since_start(change)
    rests = (scene.since_start(event) for event in scene.events if event.kind is Kind.REST_REACHED)
    until_us = next((at for at in rests if at > begin_us), scene.closing_us)
    return Subject(
        f"Around the first change: {change.of('change')}",
        (change,),
        frozenset(),
        ((max(begin_us - LEAD_US, 0), until_us),),
        None,
        None,
    )


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


def _row(event: Event) -> Row:
    return Row(event.group or "", event.topic or "", event.partition or 0)
