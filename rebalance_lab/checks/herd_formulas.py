"""What a spaced change must cost, by the formulas of facts/zkconsumer, 8.1 and 8.2.

Of a change that the group answers in one attempt each, with C members after it, B brokers, T topics
of every member (static subscriptions) and P partitions in all, of them q owned by those who answer:

- join to n: n notifications, n + 1 rebalances; leave and crash of n: n - 1 of each; a broker: one of
  each for every member that watches brokers; a topic: one of each for every member that subscribes.
- reads: C(3B + C + T + 7) + P + 2 * notifications, less the 1 + B of the leader finder for each member
  that owns nothing; a joiner subscribes with 2 + T reads more. That is 0.8.2 as shipped. As described,
  members read each other in one request, of which every part counts, and a joiner subscribes to the
  brokers with 2 more.
- writes: q + P, and one for a joiner's id.

Brokers are watched as described, and as shipped by who once found none.

An attempt that fails for f conflicts, with k claims won, costs its reads and f more, k + f creates and
k deletes. Each parent znode that the claims of a lone member must make costs it and a claim in vain;
where several race for one no formula tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.checks.groups import GroupsState, registration_of, state_at, topics_of
from rebalance_lab.checks.lives import Life
from rebalance_lab.checks.spaced_changes import Cost, SpacedChange
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of, once


@dataclass(frozen=True, slots=True)
class Expected:
    """`cost` by the formulas; `operations` false: reads and writes are not told by them here.
    `retries`: failed attempts that are in it."""

    cost: Cost
    operations: bool
    retries: int


@dataclass(frozen=True, slots=True)
class _Group:
    """The group after a change. `registered`: the registration of each member that can be read."""

    registered: Sequence[Event]
    before: GroupsState
    after: GroupsState
    name: str

    @property
    def size(self) -> int:
        return len(self.registered)

    @property
    def topics(self) -> list[str] | None:
        """The topics that every member subscribes to; None where they differ, or a filter is used."""
        named = {None if _filters(each) else tuple(sorted(_named(each))) for each in self.registered}
        (only, *others) = named
        return None if others or only is None else list(only)

    def owned(self, state: GroupsState) -> dict[str, int]:
        """Member -> how many partitions of the group it owns."""
        found: dict[str, int] = {}
        for (group, _, _), event in state.owners.items():
            if group == self.name and event.member is not None:
                found[event.member] = found.get(event.member, 0) + 1
        return found


def expected(history: History, change: SpacedChange) -> Expected:
    """What the formulas say of a change whose `why_not` is None."""
    before, after = state_at(history, change.phase), state_at(history, change.rest)
    payloads = [event for (group, _), event in sorted(after.ids.items()) if group == change.phase.group]
    known = [event for event in payloads if topics_of(event, after.topics) is not None]
    group = _Group(known, before, after, str(change.phase.group))
    notifications, rebalances = _rounds(history, change, group)
    topics = group.topics if known and len(known) == len(payloads) else None
    retries = sum(attempt.failed is not None for _, attempt in change.attempts())
    if not rebalances:
        return Expected(Cost(notifications, 0, 0, 0), operations=not notifications, retries=retries)
    parents = _parents(history, change)
    if topics is None or not after.brokers or (parents and rebalances > 1):
        return Expected(Cost(notifications, rebalances, 0, 0), operations=False, retries=retries)
    reads = _reads(change, group, topics, notifications)
    writes = _writes(change, group) + 2 * parents
    return Expected(Cost(notifications, rebalances, reads, writes), True, retries)


def _rounds(history: History, change: SpacedChange, group: _Group) -> tuple[int, int]:
    """Notifications and rebalances (facts 8.2)."""
    n = change.before
    if change.kind == "join":
        return n, n + 1
    if change.kind in ("leave", "crash"):
        return n - 1, n - 1
    if change.kind == "broker":
        there = [life for life in change.members if not change.left(life)]
        watching = sum(_described(life) or life.who in _found_none(history) for life in there)
        return watching, watching
    assert change.event is not None
    return _topic_rounds(change.event, group)


def _described(life: Life) -> bool:
    return life.started.of("rules") == "described"


@once
def _found_none(history: History) -> set[tuple[str, str | None]]:
    """(actor, member): who rebalanced without any broker, and has watched them since."""
    warned = events_of(history, Kind.WARNED)
    return {(event.actor, event.member) for event in warned if str(event.of("message")).startswith("no brokers found")}


def _topic_rounds(event: Event, group: _Group) -> tuple[int, int]:
    """A topic that comes is told to who subscribes to it by name, and to all filters; one that
    grows to all that read it."""
    topic = str(event.topic)
    reading = sum(bool(topics_of(each, [topic])) for each in group.registered)
    filters = sum(_filters(each) for each in group.registered)
    by_name = sum(not _filters(each) and bool(topics_of(each, [topic])) for each in group.registered)
    return (by_name + filters if event.kind is Kind.CREATED else reading), reading


def _filters(registered: Event) -> bool:
    registration = registration_of(registered)
    return registration is not None and registration.wildcard


def _named(registered: Event) -> list[str]:
    """The topics that a registration names."""
    registration = registration_of(registered)
    return [] if registration is None else [topic for topic, _ in registration.subscription]


def _reads(change: SpacedChange, group: _Group, topics: Sequence[str], notifications: int) -> int:
    members, brokers, count = group.size, len(group.after.brokers), len(topics)
    partitions = sum(len(group.after.topics[topic][1]) for topic in topics if topic in group.after.topics)
    idle = members - len(group.owned(group.after))
    reads = members * (3 * brokers + members + count + 7) + partitions + 2 * notifications - idle * (1 + brokers)
    if change.kind == "join":
        joiner = next((life for life in change.members if change.event and life.member == change.event.member), None)
        reads += 2 + count + (2 if joiner is not None and _described(joiner) else 0)
    for wants, conflicts in _failed(change):
        reads += 2 * brokers + members + count + wants + 6 + conflicts
    return reads


def _writes(change: SpacedChange, group: _Group) -> int:
    leaver = change.event.member if change.event is not None else None
    given_up = sum(count for member, count in group.owned(group.before).items() if member != leaver)
    taken = sum(group.owned(group.after).values())
    writes = given_up + taken + (change.kind == "join")
    for wants, conflicts in _failed(change):
        writes += wants + (wants - conflicts)
    return writes


def _failed(change: SpacedChange) -> list[tuple[int, int]]:
    """(partitions wanted, conflicts) of each attempt that failed."""
    return [
        (_length(attempt.decided, "wants"), _length(attempt.failed, "conflicts"))
        for _, attempt in change.attempts()
        if attempt.failed is not None
    ]


def _length(event: Event | None, name: str) -> int:
    told = None if event is None else event.of(name)
    return len(told) if isinstance(told, list | tuple) else 0


def _parents(history: History, change: SpacedChange) -> int:
    """Persistent znodes below the group's that its members made."""
    begin_us, end_us = change.phase.at_us - TOLERANCE_US, change.rest.at_us - TOLERANCE_US
    actors = {life.actor for life in change.members}
    made = _made(history)
    return sum(
        event.group == change.phase.group and begin_us <= event.at_us < end_us and actor in actors
        for actor, event in made
    )


@once
def _made(history: History) -> list[tuple[str, Event]]:
    """Persistent znodes of groups that members made, with who did."""
    actors = {event.session: event.actor for event in events_of(history, Kind.CONNECTED)}
    return [
        (actors[event.session], event)
        for event in events_of(history, Kind.CREATED)
        if event.of("ephemeral") is False and event.group is not None and event.session in actors
    ]
