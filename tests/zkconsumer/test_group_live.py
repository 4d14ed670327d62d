"""The same member on a real ZooKeeper: the walk-through, and the same operations as simulated."""

from __future__ import annotations

from typing import Any

import pytest
from group_stage import GROUP, Stage

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.recorder import MemorySink
from rebalance_lab.kernel import Scope
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.wire.payloads import broker_payload, topic_payload
from rebalance_lab.world.errors import NodeExists, NoNode
from rebalance_lab.world.live.environment import live_environment
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper
from zkconsumer.config import ConsumerConfig
from zkconsumer.member import Member
from zkconsumer.rules import DESCRIBED, SHIPPED, RuleSet
from zkconsumer.subscription import Static, Subscription, WhiteList

LIMIT_US = 30_000_000
LOOK_PERIOD_US = 10_000

JOINED = {"m1": {"m1": [0, 1, 2]}, "m2": {"m1": [0, 1], "m2": [2]}, "m3": {"m1": [0], "m2": [1], "m3": [2]}}
LEFT = {"m1": {"m2": [0, 1], "m3": [2]}, "m2": {"m3": [0, 1, 2]}}


class LiveStage:
    """Members of one group in one process, on the tests' server. Paths outside of the group and
    the topic are shared with other tests."""

    def __init__(self, live: LiveKernel, server: EmbeddedZooKeeper, rules: RuleSet, name: str = "walk") -> None:
        self.group = f"{name}-{rules.name}"
        self.topic = f"{name}ed-{rules.name}"
        self.sink = MemorySink()
        self._live = live
        self._connect = server.connect_string
        self._rules = rules
        self._closing = {actor: live.kernel.flag(f"close {actor}") for actor in JOINED}
        self._outside = live_environment("outside", live, MemorySink(), 1).zookeeper.open(self._connect, 10_000)

    async def prepare(self, partitions: int = 3) -> None:
        znodes = {
            "/brokers": b"",
            "/brokers/ids": b"",
            "/brokers/topics": b"",
            "/brokers/ids/0": broker_payload("h", 9092, timestamp_ms=0),
            f"/brokers/topics/{self.topic}": topic_payload({each: [0] for each in range(partitions)}),
            "/consumers": b"",
        }
        for path, data in znodes.items():
            try:
                await self._outside.create(path, data)
            except NodeExists:
                continue

    async def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False) -> None:
        await self._outside.create(path, data, ephemeral=ephemeral)

    async def delete(self, path: str) -> None:
        await self._outside.delete(path)

    def start(self, actor: str, scope: Scope, subscription: Subscription | None = None, **settings: str) -> None:
        config = ConsumerConfig.from_properties(
            {
                "group.id": self.group,
                "zookeeper.connect": self._connect,
                "zookeeper.session.timeout.ms": "2000",
                "rebalance.backoff.ms": "200",
                "rebalance.max.retries": "20",
                **{key.replace("_", "."): value for key, value in settings.items()},
            }
        )
        environment = live_environment(actor, self._live, self.sink, 1, host=f"host-{actor}")
        member = Member(environment, config, rules=self._rules)
        scope.spawn(member.run(subscription or Static({self.topic: 1}), self._closing[actor]), actor)

    def close(self, actor: str) -> None:
        self._closing[actor].raise_()

    async def becomes(self, expected: dict[str, list[int]], topic: str | None = None) -> None:
        """Until the registry shows these owners; raises TimedOut."""
        async with self._live.kernel.timeout(LIMIT_US, f"owners {expected}"):
            while await self._owners(topic or self.topic) != expected:
                await self._live.kernel.sleep(LOOK_PERIOD_US)

    async def until(self, kind: Kind, count: int, actor: str = "m1") -> None:
        """Until the actor has told that many events of a kind; raises TimedOut."""
        async with self._live.kernel.timeout(LIMIT_US, f"{count} x {kind} of {actor}"):
            while sum(event.kind is kind and event.actor == actor for event in self.sink.events) < count:
                await self._live.kernel.sleep(LOOK_PERIOD_US)

    async def _owners(self, topic: str) -> dict[str, list[int]] | None:
        """actor -> partitions; None when they change while we look."""
        found: dict[str, list[int]] = {}
        path = f"/consumers/{self.group}/owners/{topic}"
        try:
            for name in (await self._outside.children(path)).value.names:
                thread = (await self._outside.get(f"{path}/{name}")).value.data.decode()
                found.setdefault(thread.removeprefix(f"{self.group}_host-").split("-")[0], []).append(int(name))
        except NoNode:
            return None
        return found


def first_operations(events: list[Event], group: str, topic: str) -> list[str]:
    """What m1 asked until its first watch fired, in names that both worlds share."""
    mine = [event for event in events if event.actor == "m1"]
    names = {mine[0].member: "m1", group: "GROUP", topic: "TOPIC"}
    found = []
    for event in mine:
        if event.kind is Kind.WATCH_FIRED:
            break
        if event.kind is Kind.INVOKED:
            path = "/".join(names.get(part, part) for part in str(event.of("path")).split("/"))
            found.append(f"{event.of('op')} {path}")
    return found


@pytest.mark.parametrize("rules", [DESCRIBED, SHIPPED], ids=lambda rules: rules.name)
def test_the_walk_through_on_a_real_server(embedded_zookeeper: EmbeddedZooKeeper, rules: RuleSet) -> None:
    async def live_story(stage: LiveStage) -> None:
        await stage.prepare()
        async with live.kernel.scope("members") as scope:
            for actor, expected in JOINED.items():
                stage.start(actor, scope)
                await stage.becomes(expected)
            for actor, expected in LEFT.items():
                stage.close(actor)
                await stage.becomes(expected)
            stage.close("m3")

    async def simulated_story(stage: Stage) -> None:
        await stage.prepare()
        await stage.zookeeper.create("/consumers", b"")
        await stage.join("m1")
        await stage.join("m2")

    with LiveKernel() as live:
        stage = LiveStage(live, embedded_zookeeper, rules)
        live.run(live_story(stage))
    simulated = first_operations(Stage(rules=rules).play(simulated_story).sink.events, GROUP, "t")
    assert len(simulated) > 20
    assert first_operations(stage.sink.events, stage.group, stage.topic) == simulated


@pytest.mark.parametrize("rules", [DESCRIBED, SHIPPED], ids=lambda rules: rules.name)
def test_a_filter_on_a_real_server(embedded_zookeeper: EmbeddedZooKeeper, rules: RuleSet) -> None:
    another = f"filtered-{rules.name}2"

    async def live_story(stage: LiveStage) -> None:
        await stage.prepare()
        async with live.kernel.scope("members") as scope:
            stage.start("m1", scope, WhiteList(f"{stage.topic}.*"))
            await stage.becomes({"m1": [0, 1, 2]})
            await stage.create(f"/brokers/topics/{another}", topic_payload({0: [0]}))
            await stage.becomes({"m1": [0]}, another)
            stage.close("m1")

    async def simulated_story(stage: Stage) -> None:
        await stage.prepare()
        await stage.zookeeper.create("/consumers", b"")
        await stage.join("m1", WhiteList("t.*"))
        await stage.add_topic("t2", 1)
        await stage.quiet()

    with LiveKernel() as live:
        stage = LiveStage(live, embedded_zookeeper, rules, "filter")
        live.run(live_story(stage))
    simulated = first_operations(Stage(rules=rules).play(simulated_story).sink.events, GROUP, "t")
    assert len(simulated) > 30
    assert first_operations(stage.sink.events, stage.group, stage.topic) == simulated


def test_f7_on_a_real_server(embedded_zookeeper: EmbeddedZooKeeper) -> None:
    """An ephemeral znode in the place of a topic's owners interrupts the claim there too."""

    async def live_story(stage: LiveStage) -> None:
        await stage.prepare()
        await stage.create("/brokers/topics/zz", topic_payload({0: [0]}))
        for path in ("", "/owners"):
            await stage.create(f"/consumers/{stage.group}{path}")
        await stage.create(f"/consumers/{stage.group}/owners/zz", ephemeral=True)
        async with live.kernel.scope("members") as scope:
            stage.start("m1", scope, Static({stage.topic: 1, "zz": 1}), rebalance_max_retries="2")
            await stage.until(Kind.REBALANCE_ENDED, 1)
            await stage.becomes({"m1": [0, 1, 2]})
            stage.close("m1")

    with LiveKernel() as live:
        stage = LiveStage(live, embedded_zookeeper, SHIPPED, "interrupt")
        live.run(live_story(stage))
    reasons = [str(event.of("why")) for event in stage.sink.events if event.kind is Kind.ATTEMPT_FAILED]
    assert [why.startswith("NoChildrenForEphemerals: ") for why in reasons] == [True, True]
    assert not [event for event in stage.sink.events if event.kind is Kind.OWNED]


@pytest.mark.parametrize(
    ("settings", "ends"),
    [
        ({"keep_claims_on_conflict": "true"}, {"m1": [0, 1, 2], "m2": [3]}),
        ({"keep_claims_on_conflict": "true", "release_claims_on_watch": "true"}, {"m1": [0, 1], "m2": [2, 3]}),
        ({}, {"m1": [0, 1], "m2": [2, 3]}),
    ],
    ids=["kept", "kept until a watch fires", "released"],
)
def test_claims_that_are_kept_deadlock_on_a_real_server(
    embedded_zookeeper: EmbeddedZooKeeper, settings: dict[str, Any], ends: dict[str, list[int]]
) -> None:
    """m1 wants all four, alone as it thinks, and a stranger holds the last; m2 comes and wants
    the last two. The stranger goes; m2, which looks more often, has it first."""

    async def live_story(stage: LiveStage) -> None:
        await stage.prepare(partitions=4)
        owners = f"/consumers/{stage.group}/owners/{stage.topic}"
        for path in (f"/consumers/{stage.group}", owners.rpartition("/")[0], owners):
            await stage.create(path)
        await stage.create(f"{owners}/3", b"stranger-0", ephemeral=True)
        async with live.kernel.scope("members") as scope:
            stage.start("m1", scope, rebalance_backoff_ms="800", rebalance_max_retries="2", **settings)
            await stage.until(Kind.ATTEMPT_FAILED, 1, "m1")
            stage.start("m2", scope, rebalance_backoff_ms="100", rebalance_max_retries="15", **settings)
            await stage.until(Kind.ATTEMPT_FAILED, 1, "m2")
            await stage.delete(f"{owners}/3")
            await stage.until(Kind.ATTEMPT_BEGAN, 2, "m1")
            await stage.becomes(ends)
            if ends["m1"] == [0, 1, 2]:
                await stage.until(Kind.REBALANCE_ENDED, 1, "m1")
                assert not [event for event in stage.sink.events if event.kind is Kind.OWNED]
                await stage.becomes(ends)
            for actor in ("m1", "m2"):
                stage.close(actor)

    with LiveKernel() as live:
        stage = LiveStage(live, embedded_zookeeper, DESCRIBED, f"keep{len(settings)}")
        live.run(live_story(stage))
    holds = [event.of("holds") for event in stage.sink.events if event.kind is Kind.ATTEMPT_FAILED]
    assert any(holds) is bool(settings)
