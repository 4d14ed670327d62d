"""What each spaced change of a group cost, and what it must cost by protocol (claims Z7a, Z7c).

The one computation of herd costs: the checks `herd_cost` and `conflict_cost` judge it, and the analysis lists it
(`analysis.trialwise.rows`). The formulas hold when every attempt succeeds, with C members registered after the
change, W of them with a topic filter, and B brokers:

- join to n members: n notifications, n + 1 rebalances; leave or crash of one of n: n - 1 of each; a broker: one of each
  for every member that watches brokers; a topic: one of each for every member that subscribes to it. Members
  `described` watch brokers; members as shipped do so only after a rebalance that found none.
- Reads of a member with T topics and p partitions, w = 1 if it has a filter: 3B + C + T + p + 7 + 2w + W, less the
  1 + B of the leader finder if p = 0; two for each notification. A joiner makes 2 + T more reads to subscribe, 6 more
  with a filter, and as described 2 more for the brokers. If no member has a filter and all read the same topics, that
  is C(3B + C + T + 7) + P for the group.
- Writes of the group: q deletes of the partitions that the remaining members owned, P creates, one for a joiner's id,
  and two for each missing parent of what a lone member creates. Commits of offsets are separate (`operations`).

Source: `ZookeeperConsumerConnector` and `ZkUtils` of 0.8.2.2. The formulas use nothing that the members did in the
change, neither failed attempts nor created znodes. Their inputs are the registrations, owners, brokers and topics that
the registry held before and after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rebalance_lab.checks.causes import Cause, cause, merged_notification
from rebalance_lab.checks.conflicts import Conflict, conflicts_of
from rebalance_lab.checks.members import MemberKey, MemberLife
from rebalance_lab.checks.operations import most_commits
from rebalance_lab.checks.registry_state import (
    RegistryState,
    Timeline,
    has_filter,
    registration_of,
    state_at,
    topics_of,
)
from rebalance_lab.checks.spaced_changes import Cost, SpacedChange, cost, spaced_changes, uncountable
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.rebalances import ChangeKind
from rebalance_lab.history.views import actor_by_session, events_of, once, registry
from rebalance_lab.wire.warnings import NO_BROKERS

ROUNDS = ("notifications", "rebalances")
OPERATIONS = ("reads", "writes")

#: A finding names at most so many members.
NAMED = 3


@dataclass(frozen=True, slots=True)
class CostComparison:
    """What a change cost beside what it must cost.

    `conflicts`: attempts that failed on others' claims. `doubt`: why the cost cannot be judged; `incomparable`: why
    reads and writes cannot be compared; each None if they can. `other_causes`: the members whose rebalance the change
    did not trigger.
    """

    change: SpacedChange
    cost: Cost
    expected: Expected
    conflicts: Sequence[Conflict]
    doubt: str | None
    incomparable: str | None
    other_causes: Sequence[str] = ()

    @property
    def contradicted(self) -> str | None:
        """Why the registry contradicts a reported conflict, the first such; None if there is none."""
        return next((each.contradicted for each in self.conflicts if each.contradicted is not None), None)

    @property
    def added_reads(self) -> int | None:
        """Reads above the formula; None if they cannot be compared."""
        return None if self.incomparable else self.cost.reads - (self.expected.reads or 0)

    @property
    def added_writes(self) -> int | None:
        return None if self.incomparable else self.cost.writes - (self.expected.writes or 0)

    @property
    def added_percent(self) -> int:
        """The larger of both as a share of the formula, in percent, rounded; 0 if they cannot be compared."""
        pairs = ((self.added_reads, self.expected.reads), (self.added_writes, self.expected.writes))
        return max((round(100 * added / expected) for added, expected in pairs if added and expected), default=0)

    @property
    def accounted_reads(self) -> int:
        """Reads of the failed attempts, by protocol."""
        attempts = [each.attempt for each in self.conflicts]
        own = sum(self.expected.attempts.get(each.life.key, 0) for each in self.conflicts)
        return own + sum(len(each.wants) + len(each.lost) for each in attempts)

    @property
    def accounted_writes(self) -> int:
        """Writes of the failed attempts, by protocol: creates of all that they wanted, deletes of what they got."""
        return sum(2 * len(each.attempt.wants) - len(each.attempt.lost) for each in self.conflicts)

    def wrong_rounds(self) -> list[str]:
        """How notifications and rebalances differ, for each member, in words."""
        pairs = (
            ("notifications", self.cost.notified, self.expected.notified),
            ("rebalances", self.cost.rebalanced, self.expected.rebalancing),
        )
        found = [f"a rebalance of {self.other_causes[0]} for another reason"] if self.other_causes else []
        for name, counted, concerned in pairs:
            odd = _odd(counted, concerned)
            if odd:
                named = ", ".join(odd[:NAMED]) + (f", {len(odd) - NAMED} more differ" if odd[NAMED:] else "")
                found.append(f"{sum(counted.values())} {name} ({len(concerned)} expected; {named})")
        return found

    def wrong_operations(self) -> list[str]:
        """How reads and writes differ, in words; nothing if they cannot be compared. With conflicts: how their excess
        differs from what the failed attempts account for."""
        if self.incomparable:
            return []
        commits, most = self.cost.commits, self.expected.commits
        found = [f"{commits} writes of offsets (at most {most} expected)"] if commits > most else []
        if self.conflicts:
            added, accounted = (self.added_reads, self.added_writes), (self.accounted_reads, self.accounted_writes)
            rows = zip(OPERATIONS, added, accounted, strict=True)
            odd = [(name, more, due) for name, more, due in rows if more != due]
            return [f"{more} {name} above the formula ({due} accounted for)" for name, more, due in odd] + found
        pairs = [(name, getattr(self.cost, name), getattr(self.expected, name)) for name in OPERATIONS]
        return [f"{actual} {name} ({due} expected)" for name, actual, due in pairs if actual != due] + found

    def measures(self) -> dict[str, int]:
        """Of this change, each by its name: `join_1_reads`, `join_1_expected_reads`, …"""
        name = self.change.name
        found = {f"{name}_members": self.change.before, f"{name}_retries": len(self.conflicts)}
        for each in (*ROUNDS, *OPERATIONS):
            found[f"{name}_{each}"] = getattr(self.cost, each)
            if each in ROUNDS or self.incomparable is None:
                found[f"{name}_expected_{each}"] = getattr(self.expected, each)
        if self.cost.commits:
            found[f"{name}_commits"] = self.cost.commits
        return found if self.cost.bytes is None else found | {f"{name}_bytes": self.cost.bytes}


def _odd(counted: Mapping[MemberKey, int], concerned: frozenset[MemberKey]) -> list[str]:
    """The members whose number is wrong: it must be 1 for those concerned, and 0 for all others."""
    return [f"{member[1]} had {number}" for member, number in counted.items() if number != (member in concerned)]


@once
def cost_comparisons(history: History) -> Sequence[CostComparison]:
    """The cost of each spaced change that came to rest, in their order."""
    return [_comparison(history, change) for change in spaced_changes(history)]


def _comparison(history: History, change: SpacedChange) -> CostComparison:
    actual = cost(history, change)
    if change.why_not is not None:
        nothing = Expected(0, 0, frozenset(), frozenset(), None, None, change.why_not)
        return CostComparison(change, actual, nothing, (), change.why_not, change.why_not)
    due = expected(history, change)
    incomparable = uncountable(history, change) or due.no_formula
    causes = _causes(history, change, actual, due)
    doubt = _doubt(history, change, actual, due)
    if doubt is None and (unclear := [member[1] for member, why in causes.items() if why is Cause.OPEN]):
        doubt = f"it is not known what triggered the rebalance of {unclear[0]}"
    other_causes = [member[1] for member, why in causes.items() if why is Cause.OTHER]
    return CostComparison(change, actual, due, conflicts_of(history, change), doubt, incomparable, other_causes)


def _causes(history: History, change: SpacedChange, actual: Cost, due: Expected) -> dict[MemberKey, Cause]:
    """What triggered the one rebalance of each member that had one notification and was to rebalance for it. Changes of
    topics are left out: members with a filter rebalance for them without their watcher."""
    if change.event is None or change.kind == ChangeKind.TOPIC:
        return {}
    found = {}
    for life in change.members:
        concerned = life.key in due.notified & due.rebalancing
        if not concerned or actual.notified.get(life.key) != 1 or actual.rebalanced.get(life.key) != 1:
            continue
        its = (one.began for one in life.rebalances if change.phase.at_us <= one.began.at_us < change.rest.at_us)
        found[life.key] = cause(history, life, next(its), change.event)
    return found


def _doubt(history: History, change: SpacedChange, actual: Cost, due: Expected) -> str | None:
    """Why a change cannot be judged: the announcement names another size of the group, or a member's watch was not set
    again yet."""
    if due.before != change.before:
        announced = f"the {change.kind} announced by {change.phase.actor}/{change.phase.n}"
        return f"{announced} names a group of {change.before}, but {due.before} members were registered"
    lives = {life.key: life for life in change.members}
    missing = [lives[key] for key in sorted(due.notified) if actual.notified.get(key) == 0]
    return next((why for life in missing if (why := merged_notification(history, change, life)) is not None), None)


# -- the formulas --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Expected:
    """What a change must cost.

    `before`, `members`: how many were registered before and after the change. `notified`: the members that are notified
    of it once; `rebalancing`: those that rebalance once. `reads`, `writes`: of the group; None if no formula gives
    them, and `no_formula` says why. `attempts`: reads of one attempt of each member, except those of the partitions
    that it wants. `commits`: the most writes of offsets beside `writes`.
    """

    before: int
    members: int
    notified: frozenset[MemberKey]
    rebalancing: frozenset[MemberKey]
    reads: int | None
    writes: int | None
    no_formula: str | None = None
    attempts: Mapping[MemberKey, int] = field(default_factory=dict)
    commits: int = 0

    @property
    def notifications(self) -> int:
        return len(self.notified)

    @property
    def rebalances(self) -> int:
        return len(self.rebalancing)


@dataclass(frozen=True, slots=True)
class _Member:
    """A registered member. `topics`: those that it subscribes to; None if its registration or its filter cannot be
    read. `owns`: how many partitions."""

    life: MemberLife
    filters: bool
    topics: Sequence[str] | None
    owns: int

    def reads(self, topic: str) -> bool:
        return topic in (self.topics or ())


@dataclass(frozen=True, slots=True)
class _Group:
    """A group: its live members; `ids` and `filters`, how many are registered, and with a filter, dead ones
    included."""

    members: Mapping[MemberKey, _Member]
    ids: int
    filters: int
    state: RegistryState


def expected(history: History, change: SpacedChange) -> Expected:
    """What the formulas give for a change whose `why_not` is None."""
    before = _group(history, change, state_at(history, change.phase))
    after = _group(history, change, state_at(history, change.rest))
    notified, rebalancing = _concerned(history, change, before, after)
    no_formula = _no_formula(history, change, after, rebalancing)
    reads = writes = None
    if no_formula is None:
        reads = sum(_reads_of(after.members[key], after) for key in rebalancing) + 2 * len(notified)
        reads += sum(_subscribing(after.members[key]) for key in rebalancing - notified)
        writes = _writes(history, change, before, after) if rebalancing else 0
    attempts = {key: _attempt(member, after) for key, member in after.members.items()}
    commits = most_commits(history, change.phase, change.rest, _partitions(after))
    return Expected(before.ids, after.ids, notified, rebalancing, reads, writes, no_formula, attempts, commits)


def _group(history: History, change: SpacedChange, state: RegistryState) -> _Group:
    name, actors = str(change.phase.group), actor_by_session(history)
    ids = {member: event for (group, member), event in state.ids.items() if group == name}
    owns = Counter(event.member for (group, _, _), event in state.owners.items() if group == name)
    members: dict[MemberKey, _Member] = {}
    for life in change.members:
        event = ids.get(life.member)
        if event is not None and actors.get(event.session) == life.actor:
            named = [*state.topics, *_named(event)]  # a topic that is subscribed to is read even if it does not exist
            topics = topics_of(event, dict.fromkeys(named))
            members[life.key] = _Member(life, has_filter(event), topics, owns[life.member])
    return _Group(members, len(ids), sum(has_filter(event) for event in ids.values()), state)


def _named(registered: Event) -> list[str]:
    """The topics that a registration names; a filter names none."""
    registration = registration_of(registered)
    return [] if registration is None or registration.wildcard else list(registration.streams())


# -- which members are notified, and which rebalance -----------------------------------------------


def _concerned(
    history: History, change: SpacedChange, before: _Group, after: _Group
) -> tuple[frozenset[MemberKey], frozenset[MemberKey]]:
    """The members that are notified, and those that rebalance."""
    both = {key: member for key, member in after.members.items() if key in before.members}
    event = change.event
    assert event is not None
    if change.kind == ChangeKind.BROKER:
        idle = _found_no_broker(history)
        watching = frozenset(key for key, each in both.items() if _described(each.life) or key in idle)
        return watching, watching
    if change.kind == ChangeKind.TOPIC:
        topic = str(event.topic)
        reading = frozenset(key for key, each in both.items() if each.reads(topic))
        listing = frozenset(key for key, each in both.items() if each.filters) if event.kind is Kind.CREATED else ()
        return reading.union(listing), reading
    return frozenset(both), frozenset(after.members)


def _described(life: MemberLife) -> bool:
    return life.started.of("rules") == "described"


@once
def _found_no_broker(history: History) -> set[MemberKey]:
    """The members that rebalanced without any broker, and have watched brokers since."""
    warned = events_of(history, Kind.WARNED)
    found = [event for event in warned if str(event.of("message")).endswith(NO_BROKERS)]
    return {(event.actor, str(event.member)) for event in found}


# -- reads and writes ---------------------------------------------------------------------------


def _no_formula(history: History, change: SpacedChange, after: _Group, rebalancing: frozenset[MemberKey]) -> str | None:
    """Why no formula gives reads and writes; None if one does."""
    members = after.members
    unread = next((key[1] for key, each in members.items() if each.topics is None), None)
    if unread is not None:
        return f"the topics that {unread} subscribes to cannot be read"
    if change.kind == ChangeKind.TOPIC and after.filters:
        return "members with a topic filter also read the topics outside the rebalance"
    return _not_as_kafka(history, change, after, rebalancing) if rebalancing else None


def _not_as_kafka(
    history: History, change: SpacedChange, after: _Group, rebalancing: frozenset[MemberKey]
) -> str | None:
    """Why the formulas do not cover these rebalances."""
    members = after.members
    # With settings of the lab a member may send other requests than Kafka's. With `multi.read` it makes the same reads
    # in fewer requests, and each part counts as a read.
    cured = next((each.life for each in members.values() if set(_lab_settings(each.life)) - {"multi.read"}), None)
    if len(rebalancing) < len(members):
        return f"only {len(rebalancing)} of {len(members)} members rebalance"
    if cured is not None:
        return f"{cured.member} uses settings of the lab: {cured.started.of('lab')}"
    if not after.state.brokers:
        return "there are no brokers, so the attempts end early"
    races = len(members) > 1 and _missing(history, change, after)
    return "several members race for the parents of the first owner znodes" if races else None


def _lab_settings(life: MemberLife) -> Sequence[str]:
    settings = life.started.of("lab")
    return settings if isinstance(settings, list | tuple) else ()


def _attempt(member: _Member, group: _Group) -> int:
    """Reads of one attempt, except one for each partition that it wants."""
    brokers, topics = len(group.state.brokers), len(member.topics or ())
    return 2 * brokers + group.ids + topics + 6 + 2 * member.filters + group.filters


def _reads_of(member: _Member, group: _Group) -> int:
    """Reads of one successful attempt, and of the leader finder after it."""
    finder = 1 + len(group.state.brokers) if member.owns else 0
    return _attempt(member, group) + member.owns + finder


def _subscribing(joiner: _Member) -> int:
    """Reads with which a joiner sets its watches and, with a filter, lists the topics."""
    return 2 + len(joiner.topics or ()) + 6 * joiner.filters + 2 * _described(joiner.life)


def _writes(history: History, change: SpacedChange, before: _Group, after: _Group) -> int:
    given_up = sum(each.owns for key, each in before.members.items() if key in after.members)
    partitions = sum(map(len, _partitions(after).values()))
    return given_up + partitions + (change.kind == ChangeKind.JOIN) + 2 * len(_missing(history, change, after))


def _partitions(group: _Group) -> dict[str, Sequence[int]]:
    """The partitions of the topics that its members read, by topic."""
    topics = {topic for each in group.members.values() for topic in each.topics or ()}
    return {topic: group.state.topics[topic][1] for topic in topics if topic in group.state.topics}


def _missing(history: History, change: SpacedChange, after: _Group) -> set[str]:
    """Persistent znodes that did not exist before the change and must be created before ids and owners."""
    topics = _partitions(after)
    owners = f"/consumers/{change.phase.group}/owners"
    needed = {"/consumers", f"/consumers/{change.phase.group}"}
    needed |= {f"/consumers/{change.phase.group}/ids"} if change.kind == ChangeKind.JOIN else set()
    needed |= {owners, *(f"{owners}/{topic}" for topic in topics)} if topics else set()
    assert change.event is not None
    before = (change.event.zxid or 0) - 1
    return {path for path in needed if not _existence(history).get(path, Timeline()).value(before, False)}


@once
def _existence(history: History) -> dict[str, Timeline[bool]]:
    """Path below /consumers -> whether it existed: a znode that is created shows that its parents exist."""
    found: dict[str, Timeline[bool]] = {}
    for event in registry(history):
        path = str(event.of("path") or "")
        if event.kind is Kind.DELETED:
            found.setdefault(path, Timeline()).put(event, False)
        while event.kind is Kind.CREATED and path.startswith("/consumers"):
            found.setdefault(path, Timeline()).put(event, True)
            path = path.rpartition("/")[0]
    return found
