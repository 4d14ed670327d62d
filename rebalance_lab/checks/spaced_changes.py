"""Spaced changes: single changes of a group with a rest before and after, and what each of them cost.

A PHASE with `change` (join, leave, crash, broker, topic) and `members` (the group's size before) announces one. Its
cost is what the group's members did until the rest that ends the phase. A rest follows a quiet time, so an event that
the registry dates less than 2 ms before a rest came after it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.checks.members import Attempt, MemberKey, MemberLife, Rebalance, member_lives
from rebalance_lab.checks.operations import (
    committing,
    is_commit,
    only_counted,
    payload_bytes,
    recorded_singly,
    requests,
    uncounted,
)
from rebalance_lab.checks.phases import next_rest
from rebalance_lab.checks.registry_state import membership_changes
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.rebalances import AttemptFailure, ChangeKind, RebalanceOutcome
from rebalance_lab.history.views import events_of, once

#: Paths below which the one change of each kind is seen.
_PLACES: dict[str, str] = {ChangeKind.BROKER: "/brokers/ids/", ChangeKind.TOPIC: "/brokers/topics/"}


@dataclass(frozen=True, slots=True)
class Cost:
    """What members did in a change.

    `notified`: how many watches of the change fired at each member (without those of a leaver about itself, which a
    server may send while it closes the session). `rebalanced`: how many rebalances each began. `reads`, `writes`:
    requests to ZooKeeper. `commits`: writes of offsets and of their parents (`operations`), which are counted
    separately if operations were recorded one by one. `bytes`: of payload that was read; None if operations are only
    counted.
    """

    notified: Mapping[MemberKey, int]
    rebalanced: Mapping[MemberKey, int]
    reads: int
    writes: int
    commits: int
    bytes: int | None = None

    @property
    def notifications(self) -> int:
        return sum(self.notified.values())

    @property
    def rebalances(self) -> int:
        return sum(self.rebalanced.values())


@dataclass(frozen=True, slots=True)
class SpacedChange:
    """From `phase` to `rest`. `event`: the one change in the registry. `members`: those of the group that were alive in
    it. `why_not`: why its cost cannot be judged; None if it can."""

    index: int
    phase: Event
    rest: Event
    event: Event | None
    members: Sequence[MemberLife]
    why_not: str | None

    @property
    def kind(self) -> str:
        return str(self.phase.of("change"))

    @property
    def before(self) -> int:
        members = self.phase.of("members")
        return members if isinstance(members, int) else 0

    @property
    def name(self) -> str:
        """The prefix of its measures."""
        return f"{self.kind}_{self.index}"

    @property
    def watched(self) -> tuple[str, str]:
        """The paths whose watches it fires: its znode's and the parent's."""
        path = "" if self.event is None else str(self.event.of("path"))
        return path, path.rpartition("/")[0]

    def conflicts(self) -> list[tuple[MemberLife, Attempt]]:
        """The attempts in it that failed on others' claims, with their members."""
        return [
            (life, attempt)
            for life in self.members
            for rebalance in life.rebalances
            if self.phase.at_us <= rebalance.began.at_us < self.rest.at_us
            for attempt in rebalance.attempts
            if attempt.failed is not None
        ]


def announced(history: History) -> list[Event]:
    """The phases that announce a spaced change."""
    phases = events_of(history, Kind.PHASE)
    return [event for event in phases if event.of("change") is not None and isinstance(event.of("members"), int)]


def spaced_changes(history: History) -> list[SpacedChange]:
    """Every spaced change that came to rest, numbered from 1."""
    found: list[SpacedChange] = []
    for phase in announced(history):
        rest = next_rest(history, phase)
        if rest is not None:
            found.append(_spaced(history, len(found) + 1, phase, rest))
    return found


def _spaced(history: History, index: int, phase: Event, rest: Event) -> SpacedChange:
    kind = str(phase.of("change"))
    begin_us, end_us = phase.at_us - TOLERANCE_US, rest.at_us - TOLERANCE_US
    changes = [
        event
        for event in membership_changes(history)
        if begin_us <= event.at_us < end_us and (event.member is None or event.group == phase.group)
    ]
    members = [
        life
        for life in member_lives(history)
        if life.group == phase.group
        and life.started.at_us < rest.at_us
        and (life.gone is None or life.gone.at_us >= phase.at_us)
    ]
    event = changes[0] if len(changes) == 1 and _is(kind, changes[0]) else None
    return SpacedChange(index, phase, rest, event, members, _why_not(history, phase, rest, event, members))


def _is(kind: str, event: Event) -> bool:
    """Whether a change in the registry is of the announced kind."""
    if kind == ChangeKind.JOIN:
        return event.member is not None and event.kind is Kind.CREATED
    if kind in (ChangeKind.LEAVE, ChangeKind.CRASH):
        return event.member is not None and event.kind is Kind.DELETED
    return kind in _PLACES and str(event.of("path")).startswith(_PLACES[kind])


def _why_not(
    history: History, phase: Event, rest: Event, event: Event | None, members: Sequence[MemberLife]
) -> str | None:
    name = f"{phase.of('change')} announced by {phase.actor}/{phase.n}"
    if event is None:
        return f"the {name} is not the only change until the next rest"
    actors = {life.actor for life in members if life.gone is None or life.gone.at_us >= rest.at_us}
    for lost in events_of(history, Kind.DISCONNECTED, Kind.EXPIRED):
        if phase.at_us <= lost.at_us < rest.at_us and lost.actor in actors:
            return f"{lost.actor} lost its connection in the {name}"
    found = (_odd(life, rebalance, phase, rest) for life in members for rebalance in life.rebalances)
    return next((f"{why} in the {name}" for why in found if why is not None), None)


def _odd(life: MemberLife, rebalance: Rebalance, phase: Event, rest: Event) -> str | None:
    """Why the formulas do not cover a rebalance of the change; None if they do, or if it is not of the change."""
    begin_us = rebalance.began.at_us
    end_us = rest.at_us if rebalance.ended is None else rebalance.ended.at_us
    if begin_us >= rest.at_us or end_us < phase.at_us:
        return None
    killed = life.left_us is not None and life.left_us < rest.at_us  # perhaps in the middle of one
    if begin_us < phase.at_us or (end_us >= rest.at_us and not killed):
        return f"{life.member} rebalanced across the beginning or end"
    if rebalance.outcome == RebalanceOutcome.FAILED:
        return f"{life.member} gave up"
    if any(one.failed is not None and one.reason != AttemptFailure.CONFLICT for one in rebalance.attempts):
        return f"an attempt of {life.member} failed without a conflict"
    return None


def cost(history: History, change: SpacedChange) -> Cost:
    """What the change cost its group, as recorded."""
    begin_us, end_us = change.phase.at_us, change.rest.at_us
    actors = {life.actor for life in change.members}
    fired = Counter(
        event.actor
        for event in _within(events_of(history, Kind.WATCH_FIRED), begin_us, end_us)
        if event.of("path") in change.watched
    )
    others = [life for life in change.members if change.event is None or life.member != change.event.member]
    reads, writes, commits = _requests(history, change, actors)
    return Cost(
        notified={life.key: fired[life.actor] for life in others},
        rebalanced={
            life.key: sum(begin_us <= one.began.at_us < end_us for one in life.rebalances) for life in change.members
        },
        reads=reads,
        writes=writes,
        commits=commits,
        bytes=_bytes(history, actors, begin_us, end_us),
    )


def uncountable(history: History, change: SpacedChange) -> str | None:
    """Why the reads and writes of a change are not all known: a member's operations were not recorded, an operation has
    an unknown cost, or another client than members and runner sent requests. None if they are known."""
    recorded = only_counted(history) | recorded_singly(history)
    unrecorded = next((life.member for life in change.members if life.actor not in recorded), None)
    if unrecorded is not None:
        return f"the operations of {unrecorded} are not recorded"
    known = {"runner", *(life.actor for life in member_lives(history))}
    for event in _within(_operations(history), change.phase.at_us, change.rest.at_us):
        if event.actor not in known:
            return f"{event.actor}, which is not a member, sent requests"
        if (name := uncounted(event)) is not None:
            return f"{event.actor} sent an operation of unknown cost: {name}"
    return None


def _bytes(history: History, actors: set[str], begin_us: int, end_us: int) -> int | None:
    if events_of(history, Kind.OPERATIONS):
        return None
    answers = _within(events_of(history, Kind.OK), begin_us, end_us)
    return payload_bytes(history, (event for event in answers if event.actor in actors))


def _requests(history: History, change: SpacedChange, actors: set[str]) -> tuple[int, int, int]:
    """Reads, writes other than commits, and commits."""
    commit = committing(history)
    found: Counter[str] = Counter()
    for event in _within(_operations(history), change.phase.at_us, change.rest.at_us):
        if event.actor in actors:
            reads, writes = requests(event)
            found["reads"] += reads
            found["commits" if is_commit(event, commit) else "writes"] += writes
    return found["reads"], found["writes"], found["commits"]


@once
def _operations(history: History) -> list[Event]:
    return events_of(history, Kind.INVOKED, Kind.OPERATIONS)


def _within(events: Sequence[Event], begin_us: int, end_us: int) -> Sequence[Event]:
    begin = bisect_left(events, begin_us, key=lambda event: event.at_us)
    return events[begin : bisect_left(events, end_us, key=lambda event: event.at_us)]
