"""What happened, in at most five sentences, computed from the history.

Each sentence is one function: None where it has nothing to say. A trial with several faults
is told by its first; the picture shows all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rebalance_lab.analysis.results import TrialOutcome
from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.history.intervals import PAUSE
from rebalance_lab.history.intervals import Interval as Span
from rebalance_lab.report import glossary
from rebalance_lab.report.cards import overlap_layer
from rebalance_lab.report.scene import Fault, Scene, SessionEnd
from rebalance_lab.report.spans import Overlap, Row, row_of
from rebalance_lab.report.text import count, listed, moment, partitions_named, seconds, shortened, times

#: What two members do when a layer gives a partition to both.
DOUBLES = {Layer.BELIEF: "believe they own", Layer.EFFECT: "work on", Layer.REGISTRY: "stand in the registry for"}

#: What a spaced change is, as a sentence about it.
CHANGES = {
    "join": "a member joins",
    "leave": "a member leaves",
    "crash": "a member crashes",
    "broker": "a broker comes or goes",
    "topic": "a topic changes",
}

WORLDS = {"simulated": "simulated ZooKeeper", "processes": "real ZooKeeper"}


def tell(scene: Scene, wrong: Sequence[TrialOutcome] = ()) -> tuple[str, ...]:
    """At most five sentences, in the order of time. `wrong`: the anomalies that were found."""
    finding = _finding(scene, wrong)
    sentences: list[str | None] = [_cast(scene), _changes(scene), finding or _trouble(scene)]
    if scene.faults:
        fault = scene.faults[0]
        middle = finding or _trouble(scene) or _heirs(scene, fault)
        sentences = [_fault(scene, fault), _session(scene, fault), middle]
    told = tuple(sentence for sentence in (*sentences, _doubles(scene), _rest(scene)) if sentence is not None)
    assert 1 <= len(told) <= 5
    return told


def _cast(scene: Scene) -> str:
    return f"{_sharing(scene)}; no fault is injected."


def _finding(scene: Scene, wrong: Sequence[TrialOutcome]) -> str | None:
    """The first anomaly that is no overlap; of those another sentence tells."""
    found = next((each for each in wrong if overlap_layer(each.check) is None), None)
    return None if found is None else f"{glossary.title(found.check)}: {shortened(scene.plainly(found.why))}."


def _changes(scene: Scene) -> str | None:
    """What changed between the first rest and the end, and what that set off."""
    changes = Counter(
        str(event.of("change")) for event in scene.events if event.kind is Kind.PHASE and event.of("change")
    )
    if not changes:
        return None
    told = listed([f"{CHANGES.get(name, name)} {times(number)}" for name, number in sorted(changes.items())])
    rested = next((event for event in scene.events if event.kind is Kind.REST_REACHED), None)
    since_us = 0 if rested is None else scene.since_start(rested)
    counted = Counter(event.kind for event in scene.events if since_us <= scene.since_start(event) < scene.closing_us)
    return _starting(
        f"{told}; that fires {count(counted[Kind.WATCH_FIRED], 'watch', 'watches')} "
        f"and sets off {count(counted[Kind.REBALANCE_BEGAN], 'rebalance')}."
    )


def _trouble(scene: Scene) -> str | None:
    """Attempts that failed, and who gave up for good."""
    failed = [event for event in scene.events if event.kind is Kind.ATTEMPT_FAILED]
    if not failed:
        return None
    began = sum(event.kind is Kind.ATTEMPT_BEGAN for event in scene.events)
    conflicts = sum(event.of("reason") == "conflict" for event in failed)
    on_conflict = f", {conflicts:,} of them because another member holds what they claim" if conflicts else ""
    ended = [event for event in scene.events if event.kind is Kind.REBALANCE_ENDED and event.of("outcome") == "failed"]
    names = list(dict.fromkeys(event.actor for event in ended))
    verb = "gives" if len(names) == 1 else "give"
    gave_up = f"; {listed(names)} {verb} up for good" if names else ""
    return f"Of {count(began, 'attempt')} to rebalance {len(failed):,} fail{on_conflict}{gave_up}."


def _sharing(scene: Scene) -> str:
    names = [person.name for person in scene.people]
    world = WORLDS.get(scene.trial.world, scene.trial.world)
    share = "shares" if len(names) == 1 else "share"
    return f"{listed(names)} {share} {count(len(scene.rows), 'partition')} on a {world}"


def _fault(scene: Scene, fault: Fault) -> str:
    deed = glossary.fault_words(fault.name).suffers
    length = "" if fault.ended_us is None else f" for {seconds(fault.ended_us - fault.began_us)}"
    more = f" (the first of {len(scene.faults)} faults)" if len(scene.faults) > 1 else ""
    held = _held(scene, fault)
    owning = f", owner of {partitions_named(held)}," if held else ""
    return f"{_sharing(scene)}; at {moment(fault.began_us)} {fault.target}{owning} {deed}{length}{more}."


def _held(scene: Scene, fault: Fault) -> list[Row]:
    """What the registry gave the victim when the fault began."""
    return sorted(
        row_of(span)
        for span in scene.spans
        if span.layer is Layer.REGISTRY
        and span.member == fault.member
        and span.begin_us <= fault.began_us < span.end_us
    )


def _session(scene: Scene, fault: Fault) -> str | None:
    if fault.proof is None:
        return f"Nothing shows that the {fault.name} took effect, so this trial proves nothing."
    if fault.closed_us is None:
        if fault.must_outlast_session:
            return f"ZooKeeper did not close {fault.target}'s session meanwhile, so this trial proves nothing."
        if fault.name == PAUSE:
            return f"The pause is shorter than the session: ZooKeeper keeps {fault.target}'s session and znodes."
        return None
    end = next((each for each in scene.session_ends if each.at_us == fault.closed_us), None)
    verb = "closes its session" if fault.name == "leave" else "hears no more from it and closes its session"
    return f"ZooKeeper {verb} after {seconds(fault.closed_us - fault.began_us)}{_znodes(end)}."


def _znodes(end: SessionEnd | None) -> str:
    parts = [] if end is None or not end.registrations else ["its registration"]
    if end is not None and end.owners:
        parts.append(count(end.owners, "owner znode"))
    vanish = "vanishes" if len(parts) == 1 and (end is None or end.owners <= 1) else "vanish"
    return f"; {listed(parts)} {vanish} with it" if parts else ""


def _heirs(scene: Scene, fault: Fault) -> str | None:
    """Who took what the victim had: the first to claim each partition after the fault began."""
    heirs: dict[Row, Span] = {}
    for row in _held(scene, fault):
        later = [
            span
            for span in scene.spans
            if row_of(span) == row
            and span.layer is Layer.REGISTRY
            and span.begin_us > fault.began_us
            and span.begin_us < scene.closing_us
        ]
        if later:
            heirs[row] = min(later, key=lambda span: span.begin_us)
    others = {row: span for row, span in heirs.items() if span.member != fault.member}
    if not others:
        return None
    taken: dict[str, list[Row]] = {}
    for row, span in others.items():
        taken.setdefault(scene.name(span.member), []).append(row)
    last_us = max(span.begin_us for span in others.values())
    parts = [f"{name} has taken {partitions_named(rows)}" for name, rows in sorted(taken.items())]
    return f"By {moment(last_us)} {listed(parts)}."


def _doubles(scene: Scene) -> str:
    """How long two members believed, worked, or were written down as owners; else how long nobody did."""
    told: list[str] = []
    former = ""
    for layer, verb in DOUBLES.items():
        overlap = scene.longest(layer)
        if overlap is None:
            continue
        alike = [each for each in scene.overlaps if each.layer is layer]
        several = len({each.members for each in alike}) > 1
        who = "two members" if several else listed([scene.name(member) for member in overlap.members])
        waking = _waking(scene, overlap) if told else ""
        rows = partitions_named(each.row for each in alike)
        length = f"for up to {seconds(overlap.length_us)}"
        subject = "" if who == former else f"{who} "
        told.append(f"{waking}{subject}both {verb} {rows} {length}")
        former = who
    if told:
        return _starting("; ".join(told) + ".")
    return "At no moment do two members have one partition" + _nobody(scene)


def _waking(scene: Scene, overlap: Overlap) -> str:
    """`after m1 wakes at 8.00 s, ` where the overlap began after that."""
    for fault in scene.faults:
        if fault.name == PAUSE and fault.ended_us is not None and fault.ended_us <= overlap.begin_us:
            return f"after {fault.target} wakes at {moment(fault.ended_us)}, "
    return ""


def _nobody(scene: Scene) -> str:
    """The longest time without an owner, and without anybody working, once there was an owner."""
    first_us = _first_owner_us(scene)
    longest = {
        layer: max((gap.length_us for gap in scene.gaps if gap.layer is layer and gap.begin_us >= first_us), default=0)
        for layer in (Layer.REGISTRY, Layer.EFFECT)
    }
    if not any(longest.values()):
        return "; each has one all the time."
    return (
        f"; the registry is without an owner for {seconds(longest[Layer.REGISTRY])} at most, "
        f"and nobody works on a partition for {seconds(longest[Layer.EFFECT])} at most."
    )


def _first_owner_us(scene: Scene) -> int:
    """When the registry names the first owner; before that, a partition without one is no news."""
    return min((span.begin_us for span in scene.spans if span.layer is Layer.REGISTRY), default=scene.end_us)


def _rest(scene: Scene) -> str:
    """When the victim learned of its expiry, and when the group was at rest again."""
    missed = next((event for event in scene.events if event.kind is Kind.REST_MISSED), None)
    if missed is not None:
        return f"The group does not come to rest: {missed.of('why')}."
    # Rest and faults are the runner's: its own count orders even those of one instant.
    last = max((event.n for event in scene.events if event.layer is Layer.FAULT), default=-1)
    rested = (event for event in scene.events if event.kind is Kind.REST_REACHED and event.n > last)
    rest = next(rested, None)
    if rest is None:
        return "The history does not show the group at rest."
    again = "is at rest again" if scene.faults else "is at rest"
    return _starting(f"{_learning(scene)}the group {again} at {moment(scene.since_start(rest))}.")


def _learning(scene: Scene) -> str:
    victims = {fault.target for fault in scene.faults}
    expired = next((event for event in scene.events if event.kind is Kind.EXPIRED and event.actor in victims), None)
    if expired is None:
        return ""
    return f"{expired.actor} learns at {moment(scene.since_start(expired))} that its session is gone, and gives up; "


def _starting(sentence: str) -> str:
    """A capital first letter, except in a member's name."""
    first, _, rest = sentence.partition(" ")
    return sentence if any(letter.isdigit() for letter in first) else f"{first.capitalize()} {rest}"
