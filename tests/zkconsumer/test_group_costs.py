"""What a rebalance costs ZooKeeper, to the operation (claim Z7c).

Notation and formulas of docs/reference/kafka-consumer.md, "Costs": C members, W of them wildcard, w=1 if this
one is, B brokers, T topics of this member, q partitions owned before, p after.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from group_stage import Stage

from rebalance_lab.history.events import Kind
from zkconsumer.rules import SHIPPED
from zkconsumer.subscription import Static, Subscription, WhiteList

WRITES = ("create", "delete", "set")


@dataclass(frozen=True)
class Group:
    """`named` members and `filtered` ones, all on the same topics, and one that joins."""

    named: int
    filtered: int
    brokers: int
    topics: Mapping[str, int]
    joiner_filters: bool = False

    @property
    def members(self) -> int:
        return self.named + self.filtered + 1

    @property
    def wildcards(self) -> int:
        return self.filtered + self.joiner_filters

    def subscription(self, filters: bool) -> Subscription:
        return WhiteList("t.*") if filters else Static(dict.fromkeys(self.topics, 1))


GROUPS = [
    Group(named=1, filtered=0, brokers=1, topics={"t": 3}),
    Group(named=3, filtered=0, brokers=2, topics={"t": 8, "tu": 5}),
    Group(named=6, filtered=0, brokers=5, topics={"t": 4}),  # more members than partitions
    Group(named=0, filtered=2, brokers=1, topics={"t": 6, "tu": 3}, joiner_filters=True),
    Group(named=2, filtered=1, brokers=3, topics={"t": 7, "tu": 7, "tv": 1}),
    Group(named=2, filtered=2, brokers=2, topics={"t": 9}, joiner_filters=True),
]


@dataclass(frozen=True)
class Cost:
    """Reads and writes; they add up."""

    reads: int = 0
    writes: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.reads + other.reads, self.writes + other.writes)


def attempt(group: Group, *, wildcard: int, wanted: int) -> int:
    """Synchronous reads of an attempt: 2B + C + T + p + 6 + 2w + W."""
    return 2 * group.brokers + group.members + len(group.topics) + wanted + 6 + 2 * wildcard + group.wildcards


def expected(stage: Stage, group: Group, actor: str, *, wildcard: int, since_us: int, owned: int) -> Cost:
    """The formula of docs/reference/kafka-consumer.md for what the member did since then, failed attempts included."""
    notifications = [e for e in stage.events(Kind.NOTIFICATION_QUEUED, actor) if e.at_us >= since_us]
    cost = Cost(reads=2 * len(notifications), writes=owned)
    for decided in (e for e in stage.events(Kind.DECIDED, actor) if e.at_us >= since_us):
        wanted = len(decided.of("wants"))  # type: ignore[arg-type]
        cost += Cost(attempt(group, wildcard=wildcard, wanted=wanted), writes=wanted)
    for failed in (e for e in stage.events(Kind.ATTEMPT_FAILED, actor) if e.at_us >= since_us):
        assert failed.of("reason") == "conflict"
        lost = len(failed.of("conflicts"))  # type: ignore[arg-type]
        cost += Cost(reads=lost, writes=wanted - lost)
    leader_finder = 1 + group.brokers if wanted else 0
    return cost + Cost(reads=leader_finder)


def joining(group: Group) -> Cost:
    """What a join adds. By name: 1 create and 2+T reads. With a filter the topics are listed
    before the registration, when queues are made and at the first look, and there are an exists
    and the two reads of a subscription."""
    return Cost(reads=2 + len(group.topics) + 6 * group.joiner_filters, writes=1)


def asked(stage: Stage, actor: str, since_us: int) -> Cost:
    operations = Counter(each.split()[0] for each in stage.operations(actor, since_us))
    assert set(operations) <= {"get", "children", "exists", *WRITES}
    writes = sum(operations[each] for each in WRITES)
    return Cost(operations.total() - writes, writes)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("group", GROUPS, ids=lambda group: f"C{group.members}W{group.wildcards}B{group.brokers}")
def test_a_join_costs_what_the_facts_say(group: Group, seed: int) -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare(brokers=group.brokers, topics=group.topics)
        actors = {f"m{each}": each >= group.named for each in range(group.named + group.filtered)}
        for actor, filters in actors.items():
            await stage.join(actor, group.subscription(filters))
        before = Counter[str]()
        for topic in group.topics:
            before.update({actor: len(owned) for actor, owned in (await stage.owners(topic)).items()})
        since_us = stage.tasks.now_us()
        await stage.join("joiner", group.subscription(group.joiner_filters))
        for actor, filters in actors.items():
            cost = expected(stage, group, actor, wildcard=filters, since_us=since_us, owned=before[actor])
            assert asked(stage, actor, since_us) == cost, actor
        cost = expected(stage, group, "joiner", wildcard=group.joiner_filters, since_us=since_us, owned=0)
        assert asked(stage, "joiner", since_us) == cost + joining(group)

    Stage(seed=seed, rules=SHIPPED).play(story)


def test_a_whole_group_costs_the_square_of_its_size() -> None:
    """reads = C(3B + C + T + 7) + P + 2 x notifications, where every member owns something and
    no attempt fails; the failed ones are counted above."""
    brokers, topics, members = 2, {"t": 12, "tu": 12}, 4

    async def story(stage: Stage) -> None:
        await stage.prepare(brokers=brokers, topics=topics)
        for each in range(members):
            await stage.join(f"m{each}", dict.fromkeys(topics, 1))
        since_us = stage.tasks.now_us()
        grown = b'{"version":1,"partitions":{%s}}' % b",".join(b'"%d":[0]' % each for each in range(12))
        await stage.zookeeper.set("/brokers/topics/t", grown)  # the same again: nobody's share changes
        await stage.quiet()
        total = sum((asked(stage, f"m{each}", since_us) for each in range(members)), start=Cost())
        partitions = sum(topics.values())
        reads = members * (3 * brokers + members + len(topics) + 7) + partitions + 2 * members
        assert total == Cost(reads, writes=2 * partitions)

    Stage(rules=SHIPPED).play(story)
