"""What each spaced change of one history cost, beside the formulas (facts of zkconsumer, 8.1, 8.2).

A change is spaced when the runner announced it by a PHASE with `change` and `members`: it waited
for rest before, and waits for rest again. Its cost is all that the group's members did in between.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rebalance_lab.analysis.results import HerdCost
from rebalance_lab.analysis.trialwise.operations import cost, groups_of_actors
from rebalance_lab.analysis.trialwise.registry_view import RegistryView
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History, Trial
from rebalance_lab.history.views import events_of

JOIN, BROKER = "join", "broker"
_GOES = ("leave", "crash")

_RESTS = frozenset({Kind.REST_REACHED, Kind.REST_MISSED})
_WRITTEN = frozenset({Kind.CREATED, Kind.CHANGED, Kind.DELETED})
_KINDS = (
    _RESTS
    | _WRITTEN
    | {Kind.PHASE, Kind.MEMBER_STARTED, Kind.INVOKED, Kind.OPERATIONS, Kind.NOTIFICATION_QUEUED, Kind.REBALANCE_BEGAN}
)


@dataclass(frozen=True, slots=True)
class Expected:
    """What a change is to cost by the formulas. `members`: of the group after it."""

    members: int
    notifications: int
    rebalances: int
    reads: int
    writes: int


def expected(
    change: str, before: int, *, rules: str, brokers: int, topics: int, partitions: int, most: int | None = None
) -> Expected:
    """The formulas for a static group of `before` members on the same `topics`, of `partitions` in
    all, each rebalancing once at the first attempt (as `shipped`; of `described` is only taken
    that it watches the list of brokers).

    Reads of a rebalance and member: 3B + C + T + 7 and one for each partition owned after (1 + B
    less if it owns none: it finds no leaders); two for each notification; of a joiner's
    subscription 2 + T. Writes: at most 3P (q deletes, p creates, d offsets). `most`: partitions of
    the largest topic, all of them where left out: dealt by range, members beyond them own nothing.
    """
    after = before + 1 if change == JOIN else before - 1 if change in _GOES else before
    if change == BROKER and rules != "described":
        return Expected(after, 0, 0, 0, 0)
    notifications = before - 1 if change in _GOES else before
    rebalances = notifications + (change == JOIN)
    idle = max(0, after - (partitions if most is None else most))
    reads = rebalances * (3 * brokers + after + topics + 7) + 2 * notifications
    reads += partitions - idle * (1 + brokers) if rebalances else 0
    joining = 2 + topics if change == JOIN else 0
    return Expected(after, notifications, rebalances, reads + joining, 3 * partitions)


@dataclass(slots=True)
class _Open:
    """A change whose rest has not come yet."""

    group: str
    change: str
    before: int
    begin_us: int
    reads: int = 0
    writes: int = 0
    notifications: int = 0
    rebalances: int = 0


@dataclass(slots=True)
class _Course:
    trial: Trial
    group_of: dict[str, str]  # actor -> group
    registry: RegistryView = field(default_factory=RegistryView)
    topics: dict[str, set[str]] = field(default_factory=dict)
    open: _Open | None = None
    done: list[HerdCost] = field(default_factory=list)

    def feed(self, event: Event) -> None:
        if event.kind in _WRITTEN:
            self.registry.feed(event)
        elif event.kind in _RESTS:
            self.close(event.at_us, rested=event.kind is Kind.REST_REACHED)
        elif event.kind is Kind.PHASE:
            self.close(event.at_us, rested=False)
            self.begin(event)
        elif event.kind is Kind.MEMBER_STARTED:
            self._started(event)
        elif self.open is not None:
            self._count(self.open, event)

    def begin(self, phase: Event) -> None:
        change, before = phase.of("change"), phase.of("members")
        if isinstance(change, str) and isinstance(before, int):
            self.open = _Open(phase.group or "", change, before, phase.at_us)

    def _started(self, event: Event) -> None:
        group = event.group or ""
        streams = event.of("streams")
        if isinstance(streams, dict):
            self.topics.setdefault(group, set()).update(map(str, streams))

    def _count(self, change: _Open, event: Event) -> None:
        if event.kind is Kind.NOTIFICATION_QUEUED:
            change.notifications += event.group == change.group
        elif event.kind is Kind.REBALANCE_BEGAN:
            change.rebalances += event.group == change.group
        elif self.group_of.get(event.actor) == change.group:
            reads, writes = cost(event)
            change.reads += reads
            change.writes += writes

    def close(self, at_us: int, *, rested: bool) -> None:
        change, self.open = self.open, None
        if change is None:
            return
        trial, topics = self.trial, self.topics.get(change.group, set())
        sizes = [len(self.registry.partitions.get(topic, {})) for topic in topics]
        formula = expected(
            change.change,
            change.before,
            rules=trial.rules,
            brokers=len(self.registry.brokers),
            topics=len(topics),
            partitions=sum(sizes),
            most=max(sizes, default=0),
        )
        self.done.append(
            HerdCost(
                trial=trial.id,
                scenario=trial.scenario,
                world=trial.world,
                rules=trial.rules,
                seed=trial.seed,
                control=trial.control,
                plant=trial.plant,
                group=change.group,
                change=change.change,
                begin_us=change.begin_us,
                end_us=at_us,
                rested=rested,
                before=change.before,
                members=formula.members,
                reads=change.reads,
                writes=change.writes,
                notifications=change.notifications,
                rebalances=change.rebalances,
                expected_reads=formula.reads,
                most_writes=formula.writes,
                expected_notifications=formula.notifications,
                expected_rebalances=formula.rebalances,
            )
        )


def herd_costs(history: History) -> list[HerdCost]:
    """The cost of each spaced change of a trial, in their order.

    A change ends with the next rest (reached or missed), with the next phase, or with the history.
    Brokers, topics and partitions are those that the registry holds by then.
    """
    course = _Course(history.trial, groups_of_actors(history))
    for event in events_of(history, *sorted(_KINDS)):
        course.feed(event)
    if history.events:
        course.close(history.events[-1].at_us, rested=False)
    return course.done
