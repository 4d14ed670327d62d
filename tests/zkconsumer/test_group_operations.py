"""Which operations a member sends, and in which order (claims Z5a, Z6)."""

from __future__ import annotations

from typing import Any

import pytest
from group_stage import Stage

from rebalance_lab.history.events import Kind
from zkconsumer.rules import DESCRIBED, SHIPPED, RuleSet

REGISTER = [
    "create /consumers/g/ids/m1",
    "create /consumers/g/ids",
    "create /consumers/g",
    "create /consumers",
    "create /consumers/g",
    "create /consumers/g/ids",
    "create /consumers/g/ids/m1",
]
WATCH_IDS = ["exists /consumers/g/ids", "children /consumers/g/ids"]
WATCH_BROKERS = ["exists /brokers/ids", "children /brokers/ids"]
WATCH_TOPIC = ["exists /brokers/topics/t"]
BROKERS = ["children /brokers/ids", "get /brokers/ids/0"]
LEADER_FINDER = BROKERS
TWO_BROKERS = [*BROKERS, "get /brokers/ids/1"]
BEFORE_THE_MEMBERS = [
    *BROKERS,  # the cluster, before the attempt
    "get /consumers/g/ids/m1",
    *BROKERS,
    "get /consumers/g/ids/m1",
    "get /brokers/topics/t",
    "children /consumers/g/ids",
]
AFTER_THE_MEMBERS = ["children /consumers/g/ids", "get /consumers/g/offsets/t/0"]
ATTEMPT = [*BEFORE_THE_MEMBERS, "get /consumers/g/ids/m1", *AFTER_THE_MEMBERS]
ATTEMPT_WITH_MULTI_READ = [*BEFORE_THE_MEMBERS, "multi_read ", *AFTER_THE_MEMBERS]
FIRST_CLAIM = [
    "create /consumers/g/owners/t/0",
    "create /consumers/g/owners/t",
    "create /consumers/g/owners",
    "create /consumers/g/owners/t",
    "create /consumers/g/owners/t/0",
]


def first_operations(stage: Stage, **settings: Any) -> list[str]:
    async def story(stage: Stage) -> None:
        await stage.prepare(topics={"t": 1})
        await stage.join("m1", **settings)

    return stage.play(story).operations("m1")


def test_start_up_as_described() -> None:
    operations = first_operations(Stage(rules=DESCRIBED))
    assert operations == [
        *REGISTER,
        *WATCH_IDS,
        *WATCH_BROKERS,
        *WATCH_TOPIC,
        *ATTEMPT,
        *FIRST_CLAIM,
        *LEADER_FINDER,
    ]


def test_start_up_as_shipped_leaves_the_brokers_unwatched() -> None:
    operations = first_operations(Stage(rules=SHIPPED))
    assert operations == [*REGISTER, *WATCH_IDS, *WATCH_TOPIC, *ATTEMPT, *FIRST_CLAIM, *LEADER_FINDER]


@pytest.mark.parametrize("rules", [DESCRIBED, SHIPPED], ids=lambda rules: rules.name)
def test_the_cure_multi_read_replaces_the_reads_of_the_members_only(rules: RuleSet) -> None:
    plain = first_operations(Stage(rules=rules))
    cured = first_operations(Stage(rules=rules), multi_read="true")
    at = plain.index(ATTEMPT[0], plain.index(WATCH_TOPIC[0]))
    assert plain[at : at + len(ATTEMPT)] == ATTEMPT
    assert cured == [*plain[:at], *ATTEMPT_WITH_MULTI_READ, *plain[at + len(ATTEMPT) :]]


def test_a_rebalance_as_shipped_costs_what_the_formula_says() -> None:
    brokers, topics, members = 2, {"t": 3, "u": 2}, 3

    async def story(stage: Stage) -> None:
        await stage.prepare(brokers=brokers, topics=topics)
        for actor in ("m1", "m2"):
            await stage.join(actor, dict.fromkeys(topics, 1))
        since_us = stage.tasks.now_us()
        await stage.join("m3", dict.fromkeys(topics, 1))
        operations = stage.operations("m1", since_us)
        assert operations == [
            *WATCH_IDS,  # the notification
            *TWO_BROKERS,
            "get /consumers/g/ids/m1",
            *TWO_BROKERS,
            "delete /consumers/g/owners/t/0",
            "delete /consumers/g/owners/t/1",
            "delete /consumers/g/owners/u/0",
            "get /consumers/g/ids/m1",
            "get /brokers/topics/t",
            "get /brokers/topics/u",
            "children /consumers/g/ids",
            *(f"get /consumers/g/ids/{actor}" for actor in ("m1", "m2", "m3")),
            "children /consumers/g/ids",
            "get /consumers/g/offsets/t/0",
            "get /consumers/g/offsets/u/0",
            "create /consumers/g/owners/t/0",
            "create /consumers/g/owners/u/0",
            *TWO_BROKERS,  # the leader finder
        ]
        reads = [each for each in operations if each.split()[0] not in ("create", "delete")]
        taken = 2
        assert len(reads) == 2 + (3 * brokers + members + len(topics) + taken + 7)

    Stage(rules=SHIPPED).play(story)


def test_everything_is_given_up_before_anything_is_taken() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1")
        since_us = stage.tasks.now_us()
        await stage.join("m2")
        owners = "/consumers/g/owners/t"
        changes = [each for each in stage.operations("m1", since_us) if each.split()[0] in ("delete", "create")]
        assert changes == [
            *(f"delete {owners}/{partition}" for partition in range(3)),
            *(f"create {owners}/{partition}" for partition in range(2)),
        ]
        kinds = [e.kind for e in stage.sink.events if e.actor == "m1" and e.at_us >= since_us]
        disowned = [index for index, kind in enumerate(kinds) if kind is Kind.DISOWNED]
        deletes = [e for e in stage.events(Kind.INVOKED, "m1") if e.of("op") == "delete"]
        assert len(disowned) == 3
        ended = stage.events(Kind.DISOWNED, "m1")[-1]
        assert (ended.at_us, ended.n) < (deletes[0].at_us, deletes[0].n)

    Stage().play(story)


def test_a_reader_learns_where_a_partition_starts() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare(topics={"t": 2})
        for path in ("/consumers", "/consumers/g", "/consumers/g/offsets", "/consumers/g/offsets/t"):
            await stage.zookeeper.create(path, b"")
        await stage.zookeeper.create("/consumers/g/offsets/t/1", b"4711")
        await stage.join("m1")
        assert stage.details(Kind.OWNED, "m1", "offset") == [-1, 4711]

    Stage().play(story)


def test_topic_growth_and_deletion_are_heard() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare(topics={"t": 1})
        await stage.join("m1")
        await stage.zookeeper.set("/brokers/topics/t", b'{"version":1,"partitions":{"0":[0],"1":[0]}}')
        await stage.quiet()
        assert await stage.owners() == {"m1": [0, 1]}
        before = stage.count(Kind.REBALANCE_BEGAN, "m1")
        await stage.zookeeper.delete("/brokers/topics/t")
        await stage.quiet()
        assert stage.count(Kind.REBALANCE_BEGAN, "m1") == before
        text = "Topic for path /brokers/topics/t gets deleted, which should not happen at this time"
        assert stage.warnings("m1") == [text]

    Stage().play(story)


def test_brokers_that_come_are_heard_always_as_described_never_as_shipped() -> None:
    counts = {}

    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1")
        await stage.add_broker(1)
        await stage.quiet()
        counts[stage.rules.name] = stage.count(Kind.REBALANCE_BEGAN, "m1")

    for rules in (DESCRIBED, SHIPPED):
        Stage(rules=rules).play(story)
    assert counts == {"described": 2, "shipped": 1}
