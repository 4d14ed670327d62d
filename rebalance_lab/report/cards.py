"""Anomaly cards: one for each check that a trial violates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rebalance_lab.analysis.results import TrialOutcome
from rebalance_lab.checks import CHECKS
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.report import glossary
from rebalance_lab.report.findings import Finding
from rebalance_lab.report.gantt import Box, Gantt
from rebalance_lab.report.scene import Scene
from rebalance_lab.report.spacetime import SpaceTime
from rebalance_lab.report.spans import LAYERS, row_of
from rebalance_lab.report.text import count, exact_moment, listed, partitions_named, seconds, shortened

#: The largest number of background events on a card. The witness is always complete.
CONTEXT_EVENTS = 8

#: A change explains what follows within this time (µs).
NEAR_US = 500_000

#: Checks whose findings result from failed attempts.
FAILING = frozenset(
    {"non_convergence", "hold_and_wait", "disagreement", "contradiction", "unowned_window", "omission", "stays_wrong"}
)


@dataclass(frozen=True, slots=True)
class Step:
    """One event of a card. `witness` is False for background events. `anchor`: its place in the Gantt; `moment`: its
    place in the space-time diagram."""

    at: str
    actor: str
    layer: str
    deed: str
    alone: str
    witness: bool
    anchor: str | None
    moment: str | None
    source: str


@dataclass(frozen=True, slots=True)
class Card:
    """An anomaly. `kicker` names its family (zombie). `why`: the reason that the check gives. `facts`: (name, value)
    pairs. `open`: whether its steps are unfolded."""

    id: str
    check: str
    kicker: str
    title: str
    meaning: str
    why: str
    facts: tuple[tuple[str, str], ...]
    steps: tuple[Step, ...]
    together: str
    replay: str
    anchor: str | None
    open: bool


def cards_of(
    scene: Scene, gantt: Gantt, spacetime: SpaceTime | None, wrong: Sequence[Finding], replay: str
) -> tuple[Card, ...]:
    """The cards of a trial: surprises first, then overlaps. `wrong`: the findings that get a card. `replay`: the
    trial's command."""
    ranked = sorted(wrong, key=lambda each: (not each.surprising, _rank(each.outcome.check), each.outcome.check))
    return tuple(_card(scene, gantt, spacetime, finding, number, replay) for number, finding in enumerate(ranked))


def layer_of(check: str) -> Layer | None:
    """The layer that a check looks at; None if it compares several."""
    known = CHECKS.get(check)
    layers = [layer for layer in known.compares if layer in LAYERS] if known else []
    return layers[0] if len(layers) == 1 else None


def overlap_layer(check: str) -> Layer | None:
    """The layer whose overlaps a check finds; None for other checks."""
    return layer_of(check) if check.endswith("overlap") else None


def meaning(check: str) -> str:
    """What the check finds, in one sentence."""
    known = CHECKS.get(check)
    return known.meaning if known else "This lab has no check of that name; the history comes from another version."


def _rank(check: str) -> int:
    layer = layer_of(check)
    return LAYERS.index(layer) if layer is not None else len(LAYERS)


def _card(scene: Scene, gantt: Gantt, spacetime: SpaceTime | None, finding: Finding, number: int, replay: str) -> Card:
    outcome = finding.outcome
    proof = frozenset(outcome.witness)
    witness = [event for event in scene.events if event.id in proof]
    context = _context(scene, outcome.check, witness)
    steps = tuple(
        _step(scene, gantt, spacetime, event, event.id in proof)
        for event in sorted([*witness, *context], key=lambda event: (event.at_us, event.actor, event.n))
    )
    box = _shown(scene, gantt, outcome.check, witness)
    return Card(
        id=f"{gantt.prefix}-card-{number}",
        check=outcome.check,
        kicker=_kicker(scene, finding),
        why=shortened(scene.plainly(outcome.why)),
        title=glossary.title(outcome.check),
        meaning=meaning(outcome.check),
        facts=_facts(scene, outcome, witness),
        steps=steps,
        together=glossary.together(outcome.check),
        replay=replay,
        anchor=box.id if box is not None else None if spacetime is None else _moment(spacetime, witness),
        open=number == 0,
    )


def _moment(spacetime: SpaceTime, witness: list[Event]) -> str | None:
    """The mark of the last witness in the diagram."""
    return next((spacetime.anchors[event.id] for event in reversed(witness) if event.id in spacetime.anchors), None)


def _kicker(scene: Scene, finding: Finding) -> str:
    """A member that was paused past its session and overlaps with another is a zombie."""
    layer = overlap_layer(finding.outcome.check)
    zombies = {fault.member for fault in scene.faults if fault.kind.name == "pause" and fault.closed_us is not None}
    met = {member for overlap in scene.overlaps if overlap.layer is layer for member in overlap.members}
    names = [scene.name(member) for member in sorted(zombies & met, key=str)]
    kind = "Statement that failed" if finding.statement else f"Zombie {listed(names)}" if names else "Anomaly"
    return f"Surprise · {kind}" if finding.surprising else kind


def _facts(scene: Scene, outcome: TrialOutcome, witness: list[Event]) -> tuple[tuple[str, str], ...]:
    facts = [("Longest", seconds(outcome.longest_us))] if outcome.longest_us else []
    facts += [("Found", count(outcome.count, "time"))] if outcome.count else []
    rows = sorted({row_of(event) for event in witness if event.partition is not None})
    if rows:
        facts.append(("Witness on", partitions_named(rows)))
    members = sorted({scene.name(event.member) for event in witness if event.member is not None})
    if members:
        facts.append(("Who", listed(members)))
    return tuple(facts)


def _context(scene: Scene, check: str, witness: list[Event]) -> list[Event]:
    """Background events: the faults in the witness's time, their victims' closed sessions, the moments at which the
    victims learned of it, and failures that led to the finding."""
    if not witness:
        return []
    begin_us, end_us = (scene.since_start(event) for event in (witness[0], witness[-1]))
    faults = [each for each in scene.faults if each.began_us <= end_us]
    faults = [each for each in faults if not each.kind.change or each.began_us >= begin_us - NEAR_US]
    began = {each.event for each in faults}
    harmed = {each.target for each in faults if not each.kind.change}
    closed = {fault.closed_us for fault in faults}
    sessions = {end.session for end in scene.session_ends if end.name in harmed and end.at_us in closed}
    actors = {event.actor for event in witness}
    shown = {event.id for event in witness}

    def explains(event: Event) -> bool:
        match event.kind:
            case Kind.FAULT_BEGAN | Kind.FAULT_ENDED:
                fault = event.id if event.kind is Kind.FAULT_BEGAN else (event.actor, event.of("of"))
                return fault in began and (event.kind is Kind.FAULT_BEGAN or event.of("target") in harmed)
            case Kind.SESSION_CLOSED:
                return event.session in sessions
            case Kind.EXPIRED:
                return event.actor in harmed
            case Kind.ATTEMPT_FAILED:
                inside = begin_us <= scene.since_start(event) <= end_us
                return check in FAILING and inside and event.actor in actors
            case _:
                return False

    return [event for event in scene.events if event.id not in shown and explains(event)][:CONTEXT_EVENTS]


def _step(scene: Scene, gantt: Gantt, spacetime: SpaceTime | None, event: Event, witness: bool) -> Step:
    at_us = scene.since_start(event)
    name = scene.name(event.member) if event.member is not None else ""
    if event.kind is Kind.SESSION_CLOSED:
        name = next((end.name for end in scene.session_ends if end.event == event.id), "")
    return Step(
        at=exact_moment(at_us),
        actor=event.actor,
        layer=event.layer.value,
        deed=scene.words.deed(event, name),
        alone=scene.words.alone(event),
        witness=witness,
        anchor=gantt.anchor(event, at_us),
        moment=None if spacetime is None else spacetime.anchors.get(event.id),
        source=f"event {event.n} of {event.actor}",
    )


def _shown(scene: Scene, gantt: Gantt, check: str, witness: list[Event]) -> Box | None:
    """The box of the Gantt that shows the anomaly: the longest one that its witness touches."""
    kind = "overlap" if check.endswith("overlap") else "unowned"
    boxes = [
        box
        for event in witness
        if event.partition is not None
        for box in gantt.find(event.layer, row_of(event), scene.since_start(event), (kind,))
    ]
    return max(boxes, key=lambda box: box.end_us - box.begin_us, default=None)
