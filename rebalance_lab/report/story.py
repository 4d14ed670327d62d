"""What happened in a trial, in at most five sentences, for readers who do not know Kafka's source.

Each function computes one sentence from the history, or None if there is nothing to say.
"""

from __future__ import annotations

from collections.abc import Sequence

from rebalance_lab.analysis.results import TrialOutcome
from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.history.files import Trial
from rebalance_lab.history.intervals import PAUSE
from rebalance_lab.history.intervals import Interval as Span
from rebalance_lab.report import broker_story
from rebalance_lab.report.deeds import TOLD_SINGLY, deeds, held
from rebalance_lab.report.findings import is_statement
from rebalance_lab.report.glossary import Storyteller, words_of
from rebalance_lab.report.scene import Fault, Scene, SessionEnd
from rebalance_lab.report.spans import Overlap, Row, row_of
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


def tell(scene: Scene, wrong: Sequence[TrialOutcome] = ()) -> tuple[str, ...]:
    """At most five sentences, in the order of time. `wrong`: the violated checks."""
    if scene.words.story is Storyteller.BROKERS:
        return broker_story.tell(scene)
    cast, done = _cast(scene), deeds(scene)
    middle = _finding(scene, wrong) or _trouble(scene) or _heirs(scene)
    many = len(scene.faults) > TOLD_SINGLY
    followed = _stir(scene) if many else _session(scene) or _stir(scene)
    rest = [each for each in (followed, middle, _doubles(scene), _rest(scene)) if each]
    if len(rest) > 3 or not scene.faults:
        return (f"{cast}; {done}.", *rest)
    return (f"{cast}.", starting(f"{done}."), *rest)


def about(trial: Trial) -> str:
    """What the trial's scenario does: one sentence without its full stop."""
    try:
        does = scenario(trial.scenario).summary
    except PlanError:
        return "A scenario that this lab no longer has"
    return f"{does[:1].upper()}{does[1:]}"


def rules_in_words(trial: Trial) -> str:
    """Which rules the trial's nodes follow, and whose they are."""
    return words_of(trial.generation).rules.get(trial.variant, trial.variant)


def _cast(scene: Scene) -> str:
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


def _session(scene: Scene) -> str | None:
    """What happened to the session of the first fault's victim."""
    fault = next((each for each in scene.harms if each.member is not None), None)
    if fault is None:
        return None
    if fault.proof is None:
        return f"Nothing shows that the {fault.kind.noun} took effect, so this trial proves nothing."
    if fault.closed_us is None:
        return _session_kept(fault)
    end = next((each for each in scene.session_ends if each.at_us == fault.closed_us), None)
    if fault.kind.name == "expire":
        return f"ZooKeeper closes {fault.target}'s session while {fault.target} is alive{_znodes(end)}."
    after = seconds(fault.closed_us - fault.began_us)
    return f"ZooKeeper hears nothing more from {fault.target} and closes its session after {after}{_znodes(end)}."


def _session_kept(fault: Fault) -> str | None:
    if fault.must_outlast_session:
        return f"ZooKeeper did not close {fault.target}'s session meanwhile, so this trial proves nothing."
    if fault.kind.name == PAUSE:
        return f"The pause is shorter than the session: ZooKeeper keeps {fault.target}'s session and znodes."
    return None


def _znodes(end: SessionEnd | None) -> str:
    parts = [] if end is None or not end.registrations else ["its registration"]
    if end is not None and end.owners:
        parts.append(count(end.owners, "owner znode"))
    vanish = "vanishes" if len(parts) == 1 and (end is None or end.owners <= 1) else "vanish"
    return f"; {listed(parts)} {vanish} with it" if parts else ""


def _stir(scene: Scene) -> str | None:
    """Notifications and rebalances between the first rest and the end."""
    rested = next((event for event in scene.events if event.kind is Kind.REST_REACHED), None)
    since_us = 0 if rested is None else scene.since_start(rested)
    kinds = [event.kind for event in scene.events if since_us <= scene.since_start(event) < scene.closing_us]
    fired, begun = kinds.count(Kind.WATCH_FIRED), kinds.count(Kind.REBALANCE_BEGAN)
    if not scene.faults or not begun:
        return None
    told = f"ZooKeeper sends {count(fired, 'notification')}, and " if fired else ""
    what = "in which a member gives up all it owns, reads which members there are and takes its share"
    return starting(f"{told}this sets off {count(begun, 'rebalance')}, {what}.")


def _finding(scene: Scene, wrong: Sequence[TrialOutcome]) -> str | None:
    """Anomalies except overlaps, which `_doubles` describes; if there is no anomaly at all, failed statements."""
    found = [each for each in wrong if not each.check.endswith("overlap")]
    anomalies = [each for each in found if not is_statement(each.check)]
    if not anomalies and len(found) == len(wrong):
        anomalies = found
    if not anomalies:
        return None
    told = "; ".join(shortened(scene.plainly(each.why), LETTERS) for each in anomalies[:ANOMALIES])
    return f"What went wrong: {told}."


def _trouble(scene: Scene) -> str | None:
    """Attempts that failed, and members that gave up for good."""
    failed = [event for event in scene.events if event.kind is Kind.ATTEMPT_FAILED]
    if not failed:
        return None
    began = sum(event.kind is Kind.ATTEMPT_BEGAN for event in scene.events)
    conflicts = sum(event.of("reason") == "conflict" for event in failed)
    on_conflict = f", {conflicts:,} of them because another member holds what they claim" if conflicts else ""
    ended = [event for event in scene.events if event.kind is Kind.REBALANCE_ENDED and event.of("outcome") == "failed"]
    names = list(dict.fromkeys(event.actor for event in ended))
    verb = "gives" if len(names) == 1 else "give"
    gave_up = f"; {members_named(names)} {verb} up for good" if names else ""
    fail = "fails" if len(failed) == 1 else "fail"
    return f"Of {count(began, 'attempt')} to rebalance {len(failed):,} {fail}{on_conflict}{gave_up}."


def _heirs(scene: Scene) -> str | None:
    """Which members took the victim's partitions: the first to claim each after the only fault began."""
    if len(scene.faults) != 1 or scene.faults[0].member is None:
        return None
    (fault,) = scene.faults
    heirs: dict[Row, Span] = {}
    for row in held(scene, fault):
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
        return f"; every {place} has an owner all the time."
    if not registry_us:
        return f"; at worst {have_none} a {place} for {seconds(effect_us)}."
    idle = f", and {have_none} it for {seconds(effect_us)}" if effect_us > 2 * registry_us else ""
    return f"; at worst a {place} has no owner for {seconds(registry_us)}{idle}."


def _rest(scene: Scene) -> str:
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
