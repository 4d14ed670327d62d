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
from rebalance_lab.checks.members import Life
from rebalance_lab.checks.operations import most_commits
from rebalance_lab.checks.registry_state import GroupsState, registration_of, state_at, topics_of
from rebalance_lab.checks.spaced_changes import Cost, SpacedChange, Who, cost, spaced_changes, uncountable
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import actor_by_session, events_of, once, registry
from rebalance_lab.wire.warnings import NO_BROKERS

ROUNDS = ("notifications", "rebalances")
OPERATIONS = ("reads", "writes")

#: Members that a finding names, at most.
NAMED = 3


@dataclass(frozen=True, slots=True)
class Bill:
    """`doubt`: why the change's cost says nothing, None where it does. `silent`: why its reads and
    writes cannot be compared, None where they can. `conflicts`: attempts that failed on others'
    claims."""

    change: SpacedChange
    cost: Cost
    expected: Expected
    conflicts: Sequence[Conflict]
    doubt: str | None
    silent: str | None
    uncaused: Sequence[str] = ()

    @property
    def invented(self) -> str | None:
        """The first reported conflict that the registry contradicts; None where there is none."""
        return next((each.invented for each in self.conflicts if each.invented is not None), None)

    @property
    def added_reads(self) -> int | None:
        """Reads above the formula; None where it gives none."""
        return None if self.silent else self.cost.reads - (self.expected.reads or 0)

    @property
    def added_writes(self) -> int | None:
        return None if self.silent else self.cost.writes - (self.expected.writes or 0)

    @property
    def added_percent(self) -> int:
        """The larger of both as a share of the formula, in percent, rounded; 0 where it gives none."""
        pairs = ((self.added_reads, self.expected.reads), (self.added_writes, self.expected.writes))
        return max((round(100 * added / told) for added, told in pairs if added and told), default=0)

    @property
    def accounted_reads(self) -> int:
        """Reads of the failed attempts, by protocol."""
        return sum(self.expected.attempts.get(each.life.who, 0) + each.wants + each.lost for each in self.conflicts)

    @property
    def accounted_writes(self) -> int:
        """Writes of the failed attempts, by protocol: creates of all, deletes of what was won."""
        return sum(2 * each.wants - each.lost for each in self.conflicts)

    def wrong_rounds(self) -> list[str]:
        """Where notifications and rebalances differ, member by member, in words."""
        pairs = (
            ("notifications", self.cost.notified, self.expected.notified),
            ("rebalances", self.cost.rebalanced, self.expected.rebalancing),
        )
        found = [f"a rebalance of {self.uncaused[0]} for another reason"] if self.uncaused else []
        for name, counted, concerned in pairs:
            odd = _odd(counted, concerned)
            if odd:
                named = ", ".join(odd[:NAMED]) + (f", {len(odd) - NAMED} more differ" if odd[NAMED:] else "")
                found.append(f"{sum(counted.values())} {name} ({len(concerned)} expected; {named})")
        return found

    def wrong_operations(self) -> list[str]:
        """Where reads and writes differ, in words; nothing where they cannot be compared. With conflicts it
        is where they added more or less than their failed attempts account for."""
        if self.silent:
            return []
        found = self._wrong_commits()
        if self.conflicts:
            added, accounted = (self.added_reads, self.added_writes), (self.accounted_reads, self.accounted_writes)
            rows = zip(OPERATIONS, added, accounted, strict=True)
            return [
                f"{more} {name} above the formula ({told} accounted for)" for name, more, told in rows if more != told
            ] + found
        pairs = [(name, getattr(self.cost, name), getattr(self.expected, name)) for name in OPERATIONS]
        return [f"{counted} {name} ({told} expected)" for name, counted, told in pairs if counted != told] + found

    def _wrong_commits(self) -> list[str]:
        """Where offsets were written more often than commits account for, in words."""
        commits, most = self.cost.commits, self.expected.commits
        return [f"{commits} writes of offsets (at most {most} expected)"] if commits > most else []

    def measures(self) -> dict[str, int]:
        """Of this change, each by its name: `join_1_reads`, `join_1_expected_reads`, …"""
        name = self.change.name
        found = {f"{name}_members": self.change.before, f"{name}_retries": len(self.conflicts)}
        for each in (*ROUNDS, *OPERATIONS):
            found[f"{name}_{each}"] = getattr(self.cost, each)
            if each in ROUNDS or self.silent is None:
                found[f"{name}_expected_{each}"] = getattr(self.expected, each)
        if self.cost.commits:
            found[f"{name}_commits"] = self.cost.commits
        return found if self.cost.bytes is None else found | {f"{name}_bytes": self.cost.bytes}


def _odd(counted: Mapping[Who, int], concerned: frozenset[Who]) -> list[str]:
    """The members whose number is not what it must be: 1, and 0 for those that are not concerned."""
    return [f"{who[1]} had {number}" for who, number in counted.items() if number != (who in concerned)]


@once
def bills(history: History) -> Sequence[Bill]:
    """The bill of each spaced change that came to rest, in their order."""
    return [_bill(history, change) for change in spaced_changes(history)]


def _bill(history: History, change: SpacedChange) -> Bill:
    paid = cost(history, change)
    if change.why_not is not None:
        nothing = Expected(0, 0, frozenset(), frozenset(), None, None, change.why_not)
        return Bill(change, paid, nothing, (), change.why_not, change.why_not)
    told = expected(history, change)
    silent = uncountable(history, change) or told.silent
    causes = _causes(history, change, paid, told)
    doubt = _doubt(history, change, paid, told)
    if doubt is None and (unclear := [who[1] for who, why in causes.items() if why is Cause.OPEN]):
        doubt = f"what set the rebalance of {unclear[0]} off is not known"
    uncaused = [who[1] for who, why in causes.items() if why is Cause.OTHER]
    return Bill(change, paid, told, conflicts_of(history, change), doubt, silent, uncaused)


def _causes(history: History, change: SpacedChange, paid: Cost, told: Expected) -> dict[Who, Cause]:
    """What set off the one rebalance of each member that had one notification and was to rebalance for it. Of a topic
    it is not asked: members with a filter rebalance for it without their watcher."""
    if change.event is None or change.kind == "topic":
        return {}
    found = {}
    for life in change.members:
        asked = life.who in told.notified & told.rebalancing
        if not asked or paid.notified.get(life.who) != 1 or paid.rebalanced.get(life.who) != 1:
            continue
        its = (one.began for one in life.rebalances if change.phase.at_us <= one.began.at_us < change.rest.at_us)
        found[life.who] = cause(history, life, next(its), change.event)
    return found


def _doubt(history: History, change: SpacedChange, paid: Cost, told: Expected) -> str | None:
    """What a member's state at the change leaves open: an announcement of another group, or watches
    that were not set again yet."""
    if told.before != change.before:
        announced = f"the {change.kind} announced by {change.phase.actor}/{change.phase.n}"
        return f"{announced} is of a group of {change.before}, and {told.before} members were registered"
    lives = {life.who: life for life in change.members}
    unheard = [who for who in sorted(told.notified) if paid.notified.get(who) == 0]
    return next((why for who in unheard if (why := merged_notification(history, change, lives[who])) is not None), None)


# -- the formulas --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Expected:
    """`notified`: who must be notified of the change, once; `rebalancing`: who must rebalance, once.
    `reads`, `writes`: of the group; None where no formula gives them, which `silent` explains.
    `attempts`: reads of one attempt of each member, but for those of the partitions that it wants.
    `commits`: writes of offsets beside `writes`, at most. `before`, `members`: how many were registered before and
    after the change."""

    before: int
    members: int
    notified: frozenset[Who]
    rebalancing: frozenset[Who]
    reads: int | None
    writes: int | None
    silent: str | None = None
    attempts: Mapping[Who, int] = field(default_factory=dict)
    commits: int = 0

    @property
    def notifications(self) -> int:
        return len(self.notified)

    @property
    def rebalances(self) -> int:
        return len(self.rebalancing)


@dataclass(frozen=True, slots=True)
class _Member:
    """A registered member. `topics`: those it subscribes to; None where its registration or its
    filter cannot be read. `owns`: how many partitions."""

    life: Life
    filters: bool
    topics: Sequence[str] | None
    owns: int

    def reads(self, topic: str) -> bool:
        return topic in (self.topics or ())


@dataclass(frozen=True, slots=True)
class _Group:
    """Its living members, and all that is registered, `ids`, dead members too."""

    members: Mapping[Who, _Member]
    ids: int
    filters: int
    state: GroupsState


def expected(history: History, change: SpacedChange) -> Expected:
    """What the formulas say of a change whose `why_not` is None."""
    before = _group(history, change, state_at(history, change.phase))
    after = _group(history, change, state_at(history, change.rest))
    notified, rebalancing = _concerned(history, change, before, after)
    silent = _silent(history, change, after, rebalancing)
    reads = writes = None
    if silent is None:
        reads = sum(_reads_of(after.members[who], after) for who in rebalancing) + 2 * len(notified)
        reads += sum(_subscribing(after.members[who]) for who in rebalancing - notified)
        writes = _writes(history, change, before, after) if rebalancing else 0
    attempts = {who: _attempt(member, after) for who, member in after.members.items()}
    commits = most_commits(history, change.phase, change.rest, _partitions(after))
    return Expected(before.ids, after.ids, notified, rebalancing, reads, writes, silent, attempts, commits)


def _group(history: History, change: SpacedChange, state: GroupsState) -> _Group:
    name, actors = str(change.phase.group), actor_by_session(history)
    ids = {member: event for (group, member), event in state.ids.items() if group == name}
    owns = Counter(event.member for (group, _, _), event in state.owners.items() if group == name)
    members: dict[Who, _Member] = {}
    for life in change.members:
        event = ids.get(life.member)
        if event is not None and actors.get(event.session) == life.actor:
            named = [*state.topics, *_named(event)]  # a name that is subscribed to is read, there or not
            topics = topics_of(event, dict.fromkeys(named))
            members[life.who] = _Member(life, _filters(event), topics, owns[life.member])
    return _Group(members, len(ids), sum(_filters(event) for event in ids.values()), state)


def _filters(registered: Event) -> bool:
    registration = registration_of(registered)
    return registration is not None and registration.wildcard


def _named(registered: Event) -> list[str]:
    """The topics that a registration names; none for a filter."""
    registration = registration_of(registered)
    return [] if registration is None or registration.wildcard else list(registration.streams())


# -- who is told, and who rebalances ------------------------------------------------------------


def _concerned(
    history: History, change: SpacedChange, before: _Group, after: _Group
) -> tuple[frozenset[Who], frozenset[Who]]:
    """Who is notified, and who rebalances."""
    both = {who: member for who, member in after.members.items() if who in before.members}
    event = change.event
    assert event is not None
    if change.kind == "broker":
        watching = frozenset(who for who, each in both.items() if _watches_brokers(history, each.life))
        return watching, watching
    if change.kind == "topic":
        topic = str(event.topic)
        reading = frozenset(who for who, each in both.items() if each.reads(topic))
        listing = frozenset(who for who, each in both.items() if each.filters) if event.kind is Kind.CREATED else ()
        return reading.union(listing), reading
    return frozenset(both), frozenset(after.members)


def _watches_brokers(history: History, life: Life) -> bool:
    return _described(life) or life.who in _found_none(history)


def _described(life: Life) -> bool:
    return life.started.of("rules") == "described"


@once
def _found_none(history: History) -> set[Who]:
    """Who rebalanced without any broker, and has watched them since."""
    warned = events_of(history, Kind.WARNED)
    found = [event for event in warned if str(event.of("message")).endswith(NO_BROKERS)]
    return {(event.actor, str(event.member)) for event in found}


# -- reads and writes ---------------------------------------------------------------------------


def _silent(history: History, change: SpacedChange, after: _Group, rebalancing: frozenset[Who]) -> str | None:
    """Why no formula gives reads and writes; None where one does."""
    members = after.members
    unread = next((who[1] for who, each in members.items() if each.topics is None), None)
    cured = next((each.life for each in members.values() if _other_requests(each.life)), None)
    if unread is not None:
        return f"the topics that {unread} subscribes to cannot be read"
    if change.kind == "topic" and after.filters:
        return "members with a topic filter look at the topics beside the rebalance"
    if rebalancing and len(rebalancing) < len(members):
        return f"only {len(rebalancing)} of {len(members)} members rebalance"
    if rebalancing and cured is not None:
        return f"{cured.member} has settings of the lab: {cured.started.of('lab')}"
    return _unformed(history, change, after) if rebalancing else None


def _other_requests(life: Life) -> bool:
    """Whether a member has settings of the lab with which it may make other requests than Kafka's. With
    `multi.read` it makes the same reads in fewer requests, and each part counts as a read."""
    settings = life.started.of("lab")
    return isinstance(settings, list | tuple) and any(name != "multi.read" for name in settings)


def _unformed(history: History, change: SpacedChange, after: _Group) -> str | None:
    """Why no formula holds although all members rebalance as Kafka has it."""
    if not after.state.brokers:
        return "there are no brokers, so the attempts end early"
    if len(after.members) > 1 and _missing(history, change, after):
        return "several members race for the parents of the first owner znodes"
    return None


def _attempt(member: _Member, group: _Group) -> int:
    """Reads of one attempt, but for the one of each partition that it wants."""
    brokers, topics = len(group.state.brokers), len(member.topics or ())
    return 2 * brokers + group.ids + topics + 6 + 2 * member.filters + group.filters


def _reads_of(member: _Member, group: _Group) -> int:
    """Of one successful attempt, and of the leader finder after it."""
    finder = 1 + len(group.state.brokers) if member.owns else 0
    return _attempt(member, group) + member.owns + finder


def _subscribing(joiner: _Member) -> int:
    """Reads with which a joiner sets its watches and, with a filter, lists the topics."""
    return 2 + len(joiner.topics or ()) + 6 * joiner.filters + 2 * _described(joiner.life)


def _writes(history: History, change: SpacedChange, before: _Group, after: _Group) -> int:
    given_up = sum(each.owns for who, each in before.members.items() if who in after.members)
    partitions = sum(map(len, _partitions(after).values()))
    return given_up + partitions + (change.kind == "join") + 2 * len(_missing(history, change, after))


def _partitions(group: _Group) -> dict[str, Sequence[int]]:
    """The partitions of the topics that its members read, by topic."""
    topics = {topic for each in group.members.values() for topic in each.topics or ()}
    return {topic: group.state.topics[topic][1] for topic in topics if topic in group.state.topics}


def _missing(history: History, change: SpacedChange, after: _Group) -> set[str]:
    """Persistent znodes that were not there before the change, and which registering and claiming
    must create first."""
    topics = _partitions(after)
    owners = f"/consumers/{change.phase.group}/owners"
    needed = {"/consumers", f"/consumers/{change.phase.group}"}
    needed |= {f"/consumers/{change.phase.group}/ids"} if change.kind == "join" else set()
    needed |= {owners, *(f"{owners}/{topic}" for topic in topics)} if topics else set()
    return needed - _there(history, change, needed)


def _there(history: History, change: SpacedChange, paths: set[str]) -> set[str]:
    """Those of the paths that stood before the change: a znode shows that its parents are there."""
    assert change.event is not None
    limit = change.event.zxid or 0
    ends = {path: [gone for gone in _deleted(history).get(path, ()) if gone < limit] for path in paths}
    return {path for path, made in _made(history).items() if path in paths and _stands(made, ends[path], limit)}


def _stands(made: Sequence[int], deleted: Sequence[int], limit: int) -> bool:
    before = [zxid for zxid in made if zxid < limit]
    return bool(before) and before[-1] > max(deleted, default=-1)


@once
def _made(history: History) -> dict[str, list[int]]:
    """Path below /consumers -> the zxids at which it, or a znode below it, was created."""
    found: dict[str, list[int]] = {}
    for event in registry(history):
        path = str(event.of("path") or "")
        if event.kind is Kind.CREATED and path.startswith("/consumers"):
            while path:
                found.setdefault(path, []).append(event.zxid or 0)
                path = path.rpartition("/")[0]
    return found


@once
def _deleted(history: History) -> dict[str, list[int]]:
    """Path -> the zxids at which it was deleted."""
    found: dict[str, list[int]] = {}
    for event in events_of(history, Kind.DELETED):
        found.setdefault(str(event.of("path") or ""), []).append(event.zxid or 0)
    return found
