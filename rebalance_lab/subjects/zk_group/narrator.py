"""What is said of trials of a consumer group beyond its words (`words.toml`): rebalances, claims, and who took over."""

from __future__ import annotations

from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.intervals import Interval as Span
from rebalance_lab.history.rebalances import AttemptFailure, RebalanceOutcome
from rebalance_lab.report.deeds import held
from rebalance_lab.report.narrator import Mark, Narrator
from rebalance_lab.report.scene import Scene, SessionEnd
from rebalance_lab.report.spans import Row, row_of
from rebalance_lab.report.story import session
from rebalance_lab.report.text import ROWS, count, listed, members_named, moment, partitions_named, starting

#: How a member's warning begins that says that there are more members than partitions.
IDLE = "No broker partitions consumed"
#: After more faults than these, the number of rebalances is told instead of what became of the first fault's victim.
FEW_FAULTS = 3


class GroupNarrator(Narrator):
    """Of the consumer group of Kafka 0.8."""

    def followed(self, scene: Scene) -> str | None:
        many = len(scene.faults) > FEW_FAULTS
        return _rebalances(scene) if many else session(scene, _znodes) or _rebalances(scene)

    def middle(self, scene: Scene) -> str | None:
        return _failed_attempts(scene) or _heirs(scene)

    def mark(self, scene: Scene, event: Event) -> Mark | None:
        if event.kind is Kind.FAILED_OP:
            row = _claimed(event)
            return None if row is None else _refusal(scene, event, row)
        if event.kind is Kind.WARNED:
            idle = str(event.of("message")).startswith(IDLE)
            return Mark("life", "gets nothing", 4) if idle else Mark("failure", "warns", 5)
        return _step(event)


NARRATOR = GroupNarrator()


def _step(event: Event) -> Mark | None:
    """Of the steps of a rebalance."""
    number, seen = event.of("attempt"), event.of("members")
    match event.kind:
        case Kind.REBALANCE_ENDED if event.of("outcome") == RebalanceOutcome.OK:
            return Mark("rebalance", "done", 4)
        case Kind.REBALANCE_ENDED:
            return Mark("failure", "gives up", 1, "for good")
        case Kind.ATTEMPT_BEGAN if isinstance(number, int) and number:
            return Mark("rebalance", "attempt", 4, str(number + 1))
        case Kind.ATTEMPT_FAILED:
            return Mark("failure", "attempt fails:", 1, str(event.of("reason") or "error"))
        case Kind.DECIDED:
            return Mark("decision", "sees", 3, count(seen, "member") if isinstance(seen, int) else "members")
        case _:
            return None


def _znodes(end: SessionEnd) -> str:
    """`its registration and 3 owner znodes vanish`."""
    owners = sum(each.partition is not None for each in end.znodes)
    parts = ["its registration"] if len(end.znodes) > owners else []
    parts += [count(owners, "owner znode")] if owners else []
    vanish = "vanishes" if len(parts) == 1 and owners <= 1 else "vanish"
    return f"{listed(parts)} {vanish}" if parts else ""


def _rebalances(scene: Scene) -> str | None:
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


def _failed_attempts(scene: Scene) -> str | None:
    """Attempts that failed, and members that gave up for good."""
    failed = [event for event in scene.events if event.kind is Kind.ATTEMPT_FAILED]
    if not failed:
        return None
    began = sum(event.kind is Kind.ATTEMPT_BEGAN for event in scene.events)
    conflicts = sum(event.of("reason") == AttemptFailure.CONFLICT for event in failed)
    on_conflict = f", {conflicts:,} of them because another member holds what they claim" if conflicts else ""
    ended = [event for event in scene.events if event.kind is Kind.REBALANCE_ENDED]
    names = list(dict.fromkeys(event.actor for event in ended if event.of("outcome") == RebalanceOutcome.FAILED))
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


def _claimed(event: Event) -> Row | None:
    """The partition of a claim: of a create of /consumers/GROUP/owners/TOPIC/PARTITION."""
    parts = str(event.of("path") or "").split("/")
    if event.of("op") != "create" or len(parts) != 6 or parts[3] != "owners" or not parts[5].isdigit():
        return None
    return Row(parts[2], parts[4], int(parts[5]))


def _refusal(scene: Scene, event: Event, row: Row) -> Mark:
    """Of a claim that met another's znode, and whose."""
    holder = scene.owner(row, scene.since_start(event), event.member)
    verb = f"refused {ROWS}" + (":" if holder else "")
    return Mark("failure", verb, 1, f"{holder}’s" if holder else "", (row,))
