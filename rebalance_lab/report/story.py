"""Sentences about a trial of any subject, for readers who do not know Kafka's source.

Each function computes one sentence from the history, or None if there is nothing to say. A narrator chooses from them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rebalance_lab.analysis.results import TrialOutcome
from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.history.files import Trial
from rebalance_lab.history.intervals import PAUSE
from rebalance_lab.report.findings import is_statement
from rebalance_lab.report.glossary import words_of
from rebalance_lab.report.scene import Fault, Scene, SessionEnd
from rebalance_lab.report.spans import Overlap
from rebalance_lab.report.text import (
    count,
    listed,
    members_named,
    moment,
    partitions_named,
    seconds,
    shortened,
    starting,
)
from rebalance_lab.trials.api import scenario
from rebalance_lab.trials.plan import PlanError

WORLDS = {"simulated": "simulated ZooKeeper", "processes": "real ZooKeeper", "containers": "ZooKeeper in containers"}

#: Anomalies that the sentence about them names.
ANOMALIES = 2
#: At most so many letters of a check's reason are shown.
LETTERS = 150


def about(trial: Trial) -> str:
    """What the trial's scenario does: one sentence without its full stop."""
    try:
        does = scenario(trial.scenario).summary
    except PlanError:
        return "A scenario that this lab no longer has"
    return f"{does[:1].upper()}{does[1:]}"


def rules_in_words(trial: Trial) -> str:
    """Which rules the trial's nodes follow, and whose they are."""
    return words_of(trial.subject).rules.get(trial.variant, trial.variant)


def cast(scene: Scene) -> str:
    """Which members share how many partitions on which ZooKeeper, before members that join later."""
    rested_us = next((scene.since_start(each) for each in scene.events if each.kind is Kind.REST_REACHED), scene.end_us)
    began = {event.actor for event in scene.events if event.kind is Kind.MEMBER_STARTED}
    early = {
        event.actor
        for event in scene.events
        if event.kind is Kind.MEMBER_STARTED and scene.since_start(event) < rested_us
    }
    names = [each.name for each in scene.people if each.name in early or each.name not in began]
    names = names if len(names) > 1 else [each.name for each in scene.people]
    world = WORLDS.get(scene.trial.world, scene.trial.world)
    share = "has" if len(names) == 1 else "share"
    spare = len(names) - len(scene.rows)
    idle = f" ({spare} of them get none)" if spare > 0 else ""
    return f"{members_named(names)} {share} {_what(scene)}{idle} on a {world}"


def _what(scene: Scene) -> str:
    topics = {row.topic for row in scene.rows}
    of_topics = f" of {len(topics)} topics" if len(topics) > 1 else ""
    return f"{count(len(scene.rows), scene.words.place)}{of_topics}"


def session(scene: Scene, gone_with: Callable[[SessionEnd], str] = lambda _end: "") -> str | None:
    """What happened to the session of the first fault's victim. `gone_with`: the znodes that vanished with it."""
    fault = next((each for each in scene.harms if each.member is not None), None)
    if fault is None:
        return None
    if fault.proof is None:
        return f"Nothing shows that the {fault.kind.noun} took effect, so this trial proves nothing."
    if fault.closed_us is None:
        return _session_kept(fault)
    end = next((each for each in scene.session_ends if each.at_us == fault.closed_us), None)
    gone = gone_with(end) if end is not None else ""
    vanish = f"; {gone} with it" if gone else ""
    if fault.kind.name == "expire":
        return f"ZooKeeper closes {fault.target}'s session while {fault.target} is alive{vanish}."
    after = seconds(fault.closed_us - fault.began_us)
    return f"ZooKeeper hears nothing more from {fault.target} and closes its session after {after}{vanish}."


def _session_kept(fault: Fault) -> str | None:
    if fault.must_outlast_session:
        return f"ZooKeeper did not close {fault.target}'s session meanwhile, so this trial proves nothing."
    if fault.kind.name == PAUSE:
        return f"The pause is shorter than the session: ZooKeeper keeps {fault.target}'s session and znodes."
    return None


def finding(scene: Scene, wrong: Sequence[TrialOutcome]) -> str | None:
    """Anomalies except overlaps, which `_doubles` describes; if there is no anomaly at all, failed statements."""
    found = [each for each in wrong if not each.check.endswith("overlap")]
    anomalies = [each for each in found if not is_statement(each.check)]
    if not anomalies and len(found) == len(wrong):
        anomalies = found
    if not anomalies:
        return None
    told = "; ".join(shortened(scene.plainly(each.why), LETTERS) for each in anomalies[:ANOMALIES])
    return f"What went wrong: {told}."


def doubles(scene: Scene) -> str:
    """How long two members had the same partition in each layer; else how long one had no owner."""
    told: list[str] = []
    former = ""
    for layer, have in scene.words.have.items():
        overlap = scene.longest(layer)
        if overlap is None:
            continue
        alike = [each for each in scene.overlaps if each.layer is layer]
        several = len({each.members for each in alike}) > 1
        who = f"two {scene.words.node}s" if several else listed([scene.name(member) for member in overlap.members])
        waking = _waking(scene, overlap) if told else ""
        rows = partitions_named(each.row for each in alike)
        length = f"for up to {seconds(overlap.length_us)}"
        subject = "" if who == former else f"{who} "
        told.append(f"{waking}{subject}both {have.several} {rows} {length}")
        former = who
    if told:
        return starting("; ".join(told) + ".")
    return f"Two {scene.words.node}s never have the same {scene.words.place} at the same time" + _nobody(scene)


def _waking(scene: Scene, overlap: Overlap) -> str:
    """`after m1 wakes at 8.00 s, ` if the overlap began after that; else empty."""
    for fault in scene.faults:
        if fault.kind.name == PAUSE and fault.ended_us is not None and fault.ended_us <= overlap.begin_us:
            return f"after {fault.target} wakes at {moment(fault.ended_us)}, "
    return ""


def _nobody(scene: Scene) -> str:
    """The longest time that a partition had no owner, and was not worked on, after the first claim."""
    first_us = min((span.begin_us for span in scene.spans if span.layer is Layer.REGISTRY), default=scene.end_us)
    registry_us, effect_us = (
        max((gap.length_us for gap in scene.gaps if gap.layer is layer and gap.begin_us >= first_us), default=0)
        for layer in (Layer.REGISTRY, Layer.EFFECT)
    )
    place, have_none = scene.words.place, scene.words.have[Layer.EFFECT].none
    if not registry_us and not effect_us:
        return f"; every {place} has {scene.words.holder} all the time."
    if not registry_us:
        return f"; at worst {have_none} a {place} for {seconds(effect_us)}."
    idle = f", and {have_none} it for {seconds(effect_us)}" if effect_us > 2 * registry_us else ""
    return f"; at worst a {place} has no {scene.words.holder_noun} for {seconds(registry_us)}{idle}."


def rest(scene: Scene) -> str:
    """When the victim learned of its expiry, and when the group was at rest again."""
    missed = next((event for event in scene.events if event.kind is Kind.REST_MISSED), None)
    if missed is not None:
        why = shortened(scene.plainly(str(missed.of("why"))), LETTERS)
        return f"{scene.words.whole.capitalize()} does not come to rest: {why}."
    # Rest and faults are the runner's: its own count orders even those of one instant.
    last = max((event.n for event in scene.events if event.layer is Layer.FAULT), default=-1)
    rested = (event for event in scene.events if event.kind is Kind.REST_REACHED and event.n > last)
    rest = next(rested, None)
    if rest is None:
        return f"The history does not show {scene.words.whole} at rest."
    again = "is at rest again" if scene.faults else "is at rest"
    return starting(f"{_learning(scene)}{scene.words.whole} {again} at {moment(scene.since_start(rest))}.")


def _learning(scene: Scene) -> str:
    victims = {fault.target for fault in scene.faults}
    expired = next((event for event in scene.events if event.kind is Kind.EXPIRED and event.actor in victims), None)
    if expired is None:
        return ""
    learns = f"{expired.actor} learns at {moment(scene.since_start(expired))}"
    return f"{learns} that its session is gone, and gives up its {scene.words.place}s; "
