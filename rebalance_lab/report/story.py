"""What happened, in at most five sentences, computed from the history.

Each sentence is one function: None where it has nothing to say. A trial with several faults
is told by its first; the picture shows all of them.
"""

from __future__ import annotations

from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.history.intervals import Interval as Span
from rebalance_lab.report.scene import Fault, Scene, SessionEnd
from rebalance_lab.report.spans import Row, row_of
from rebalance_lab.report.text import count, listed, moment, partitions_named, seconds

WORLDS = {"simulated": "simulated ZooKeeper", "processes": "real ZooKeeper"}


def tell(scene: Scene) -> tuple[str, ...]:
    """At most five sentences, in the order of time."""
    fault = scene.faults[0] if scene.faults else None
    sentences: list[str | None] = [_cast(scene), _doubles(scene), _rest(scene)]
    if fault is not None:
        sentences = [_fault(scene, fault), _session(scene, fault), _heirs(scene, fault), _doubles(scene), _rest(scene)]
    told = tuple(sentence for sentence in sentences if sentence is not None)
    assert 1 <= len(told) <= 5
    return told


def _cast(scene: Scene) -> str:
    return f"{_sharing(scene)}; no fault is injected."


def _sharing(scene: Scene) -> str:
    names = [person.name for person in scene.people]
    world = WORLDS.get(scene.trial.world, scene.trial.world)
    share = "shares" if len(names) == 1 else "share"
    return f"{listed(names)} {share} {count(len(scene.rows), 'partition')} on a {world}"


def _fault(scene: Scene, fault: Fault) -> str:
    deed = {"pause": "is paused", "kill": "is killed", "leave": "leaves cleanly"}.get(
        fault.name, f"suffers {fault.name}"
    )
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
        if fault.name == "pause":
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
    """How long two members believed, worked, or were written down as owners."""
    verbs = {
        Layer.BELIEF: "both believe they own",
        Layer.EFFECT: "both work on",
        Layer.REGISTRY: "both stand in the registry for",
    }
    parts = []
    for layer, verb in verbs.items():
        overlap = scene.longest(layer)
        if overlap is not None:
            alike = [each for each in scene.overlaps if each.layer is layer]
            pairs = {each.members for each in alike}
            who = "two members" if len(pairs) > 1 else listed([scene.name(member) for member in overlap.members])
            rows = partitions_named(each.row for each in alike)
            parts.append(f"{who} {verb} {rows} for up to {seconds(overlap.length_us)}")
    if parts:
        return f"{_waking(scene)}{'; '.join(parts)}."
    gaps = [gap for gap in scene.gaps if gap.layer is Layer.REGISTRY and gap.begin_us >= _first_owner_us(scene)]
    if not gaps:
        return "At no moment do two members have one partition, in any layer."
    longest = max(gaps, key=lambda gap: gap.length_us)
    return (
        "At no moment do two members have one partition; the longest time without an owner is "
        f"{seconds(longest.length_us)} ({longest.row})."
    )


def _waking(scene: Scene) -> str:
    pause = next((fault for fault in scene.faults if fault.name == "pause" and fault.ended_us is not None), None)
    return "" if pause is None or pause.ended_us is None else f"{pause.target} wakes at {moment(pause.ended_us)}: "


def _first_owner_us(scene: Scene) -> int:
    """When the registry names the first owner; before that, a partition without one is no news."""
    return min((span.begin_us for span in scene.spans if span.layer is Layer.REGISTRY), default=scene.end_us)


def _rest(scene: Scene) -> str:
    """When the victim learned of its expiry, and when the group was at rest again."""
    missed = next((event for event in scene.events if event.kind is Kind.REST_MISSED), None)
    if missed is not None:
        return f"The group does not come to rest: {missed.of('why')}."
    last_us = max((fault.ended_us or fault.began_us for fault in scene.faults), default=0)
    rested = [scene.since_start(event) for event in scene.events if event.kind is Kind.REST_REACHED]
    after = next((at_us for at_us in rested if at_us >= last_us), None)
    if after is None:
        return "The history does not show the group at rest."
    if not scene.faults:
        return f"The group is at rest at {moment(after)}."
    learning = _learning(scene)
    return (
        f"{learning}; the group is at rest again at {moment(after)}."
        if learning
        else f"The group is at rest again at {moment(after)}."
    )


def _learning(scene: Scene) -> str:
    victims = {fault.target for fault in scene.faults}
    expired = next((event for event in scene.events if event.kind is Kind.EXPIRED and event.actor in victims), None)
    if expired is None:
        return ""
    return f"{expired.actor} learns at {moment(scene.since_start(expired))} that its session is gone, and gives up"
