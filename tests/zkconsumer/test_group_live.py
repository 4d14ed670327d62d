"""The same member on a real ZooKeeper: the walk-through, and the same operations as simulated."""

from __future__ import annotations

import pytest
from group_stage import GROUP, Stage

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.recorder import MemorySink
from rebalance_lab.kernel import Scope
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.wire.payloads import broker_payload, topic_payload
from rebalance_lab.world.errors import NodeExists, NoNode
from rebalance_lab.world.live.embedded import EmbeddedZooKeeper
from rebalance_lab.world.live.environment import live_environment
from zkconsumer.config import ConsumerConfig
from zkconsumer.member import Member
from zkconsumer.rules import DESCRIBED, SHIPPED, RuleSet

LIMIT_US = 30_000_000
LOOK_PERIOD_US = 10_000

JOINED = {"m1": {"m1": [0, 1, 2]}, "m2": {"m1": [0, 1], "m2": [2]}, "m3": {"m1": [0], "m2": [1], "m3": [2]}}
LEFT = {"m1": {"m2": [0, 1], "m3": [2]}, "m2": {"m3": [0, 1, 2]}}


class LiveStage:
    """Members of one group in one process, on the tests' server. Paths outside of the group and
    the topic are shared with other tests."""

    def __init__(self, live: LiveKernel, server: EmbeddedZooKeeper, rules: RuleSet) -> None:
        self.group = f"walk-{rules.name}"
        self.topic = f"walked-{rules.name}"
        self.sink = MemorySink()
        self._live = live
        self._connect = server.connect_string
        self._rules = rules
        self._closing = {actor: live.kernel.flag(f"close {actor}") for actor in JOINED}
        self._outside = live_environment("outside", live, MemorySink(), 1).zookeeper.open(self._connect, 10_000)

    async def prepare(self) -> None:
        znodes = {
            "/brokers": b"",
            "/brokers/ids": b"",
            "/brokers/topics": b"",
            "/brokers/ids/0": broker_payload("h", 9092, timestamp_ms=0),
            f"/brokers/topics/{self.topic}": topic_payload({each: [0] for each in range(3)}),
            "/consumers": b"",
        }
        for path, data in znodes.items():
            try:
                await self._outside.create(path, data)
            except NodeExists:
                continue

    def start(self, actor: str, scope: Scope) -> None:
        config = ConsumerConfig.from_properties(
            {
                "group.id": self.group,
                "zookeeper.connect": self._connect,
                "zookeeper.session.timeout.ms": "2000",
                "rebalance.backoff.ms": "200",
                "rebalance.max.retries": "20",
            }
        )
        environment = live_environment(actor, self._live, self.sink, 1, host=f"host-{actor}")
        member = Member(environment, config, rules=self._rules)
        scope.spawn(member.run({self.topic: 1}, self._closing[actor]), actor)

    def close(self, actor: str) -> None:
        self._closing[actor].raise_()

    async def becomes(self, expected: dict[str, list[int]]) -> None:
        """Until the registry shows these owners; raises TimedOut."""
        async with self._live.kernel.timeout(LIMIT_US, f"owners {expected}"):
            while await self._owners() != expected:
                await self._live.kernel.sleep(LOOK_PERIOD_US)

    async def _owners(self) -> dict[str, list[int]] | None:
        """actor -> partitions; None when they change while we look."""
        found: dict[str, list[int]] = {}
        path = f"/consumers/{self.group}/owners/{self.topic}"
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
