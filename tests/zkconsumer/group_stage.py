"""A stage for stories about groups: a simulated ZooKeeper, members on it, a look from outside."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.recorder import MemorySink
from rebalance_lab.kernel import Flag, Process, Task
from rebalance_lab.kernel.simulation import Simulation
from rebalance_lab.wire.payloads import broker_payload, topic_payload
from rebalance_lab.world.errors import NodeExists, NoNode
from rebalance_lab.world.simulated.world import SimulatedWorld
from zkconsumer.config import ConsumerConfig
from zkconsumer.fetchers import LeaseSettings
from zkconsumer.member import DEFAULT_LEASE, Member
from zkconsumer.rules import DESCRIBED, RuleSet
from zkconsumer.subscription import Subscription

GROUP = "g"
LOOK_PERIOD_US = 10_000
LIMIT_MS = 60_000


@dataclass(frozen=True)
class Started:
    """A member that was started: what a story does with it."""

    actor: str
    member: Member
    process: Process
    closing: Flag
    task: Task[None]


class Stage:
    """`Stage().play(story)` runs `async def story(stage)` in virtual time."""

    def __init__(self, *, seed: int = 1, rules: RuleSet = DESCRIBED) -> None:
        self.simulation = Simulation(seed)
        self.tasks = self.simulation.kernel
        self.sink = MemorySink()
        self.world = SimulatedWorld(self.simulation, seed, self.sink)
        self.server = self.world.zookeeper
        self.simulation.invariants.append(self.server.check)
        self.rules = rules
        outside = self.world.environment("outside", self.tasks.process("outside"))
        self.zookeeper = outside.zookeeper.open("simulated:2181", 10_000)
        self.started: dict[str, Started] = {}

    def play(self, story: Callable[[Stage], Awaitable[None]]) -> Stage:
        async def main() -> None:
            await story(self)

        try:
            self.simulation.run(main())
        finally:
            self.simulation.close()
        return self

    # -- what stories do --------------------------------------------------------------------

    async def prepare(self, *, brokers: int = 1, topics: Mapping[str, int] = {"t": 3}) -> None:
        """Write what members need: brokers, and topics (name -> partitions)."""
        for path in ("/brokers", "/brokers/ids", "/brokers/topics"):
            await self.zookeeper.create(path, b"")
        for broker in range(brokers):
            await self.add_broker(broker)
        for topic, partitions in topics.items():
            await self.add_topic(topic, partitions)

    async def add_topic(self, topic: str, partitions: int) -> None:
        payload = topic_payload({each: [0] for each in range(partitions)})
        await self.zookeeper.create(f"/brokers/topics/{topic}", payload)

    async def add_broker(self, broker: int) -> None:
        payload = broker_payload("h", 9092 + broker, timestamp_ms=0)
        await self.zookeeper.create(f"/brokers/ids/{broker}", payload)

    async def hold(self, partition: int, owner: str = "stranger-0") -> None:
        """Somebody else owns a partition of topic t."""
        for path in ("/consumers", f"/consumers/{GROUP}", f"/consumers/{GROUP}/owners", f"/consumers/{GROUP}/owners/t"):
            try:
                await self.zookeeper.create(path, b"")
            except NodeExists:
                continue
        await self.zookeeper.create(f"/consumers/{GROUP}/owners/t/{partition}", owner.encode(), ephemeral=True)

    def start(
        self,
        actor: str,
        subscription: Subscription | Mapping[str, int] | None = None,
        *,
        rules: RuleSet | None = None,
        assignor: str | None = None,
        plant: str | None = None,
        lease: LeaseSettings = DEFAULT_LEASE,
        **settings: int | str,
    ) -> Started:
        """Start a member, of topic t by default. `settings`: Kafka's, with underscores for dots."""
        defaults = {"zookeeper_session_timeout_ms": 2000, "rebalance_backoff_ms": 500}
        properties = {key.replace("_", "."): str(value) for key, value in {**defaults, **settings}.items()}
        config = ConsumerConfig.from_properties(
            {"group.id": GROUP, "zookeeper.connect": "simulated:2181", **properties}
        )
        process = self.tasks.process(actor)
        environment = self.world.environment(actor, process)
        member = Member(environment, config, rules=rules or self.rules, assignor=assignor, plant=plant, lease=lease)
        closing = self.tasks.flag(f"close {actor}")
        run = member.run({"t": 1} if subscription is None else subscription, closing)
        self.started[actor] = Started(actor, member, process, closing, self.tasks.spawn(run, actor, process=process))
        return self.started[actor]

    async def join(
        self, actor: str, subscription: Subscription | Mapping[str, int] | None = None, **settings: Any
    ) -> Started:
        """Start a member and wait until the group is quiet again. `settings`: as for `start`."""
        started = self.start(actor, subscription, **settings)
        await self.until(lambda: self.count(Kind.REBALANCE_ENDED, actor) > 0, f"first rebalance of {actor}")
        await self.quiet()
        return started

    async def leave(self, actor: str) -> None:
        """A clean leave, and quiet after it."""
        self.started[actor].closing.raise_()
        await self.started[actor].task
        await self.quiet()

    async def quiet(self, duration_ms: int = 2200) -> None:
        """Until no event but work came for `duration_ms`: longer than any reconnect takes."""

        def resting() -> bool:
            last = next((e.at_us for e in reversed(self.sink.events) if e.kind is not Kind.WORKED), 0)
            return self.tasks.now_us() - last >= duration_ms * 1000

        await self.until(resting, "quiet")

    async def until(self, condition: Callable[[], bool], what: str, limit_ms: int = LIMIT_MS) -> None:
        async with self.tasks.timeout(limit_ms * 1000, what):
            while not condition():
                await self.tasks.sleep(LOOK_PERIOD_US)

    async def sleep_ms(self, duration_ms: int) -> None:
        await self.tasks.sleep(duration_ms * 1000)

    # -- what stories see -------------------------------------------------------------------

    async def children(self, path: str) -> tuple[str, ...]:
        try:
            return (await self.zookeeper.children(path)).value.names
        except NoNode:
            return ()

    async def registered(self) -> list[str]:
        """The actors whose ids stand in the group, in order of their ids."""
        return [self.actor_of(each) for each in await self.children(f"/consumers/{GROUP}/ids")]

    async def owners(self, topic: str = "t") -> dict[str, list[int]]:
        """actor -> partitions it owns in the registry."""
        found: dict[str, list[int]] = {}
        path = f"/consumers/{GROUP}/owners/{topic}"
        for partition in sorted(await self.children(path), key=int):
            thread = (await self.zookeeper.get(f"{path}/{partition}")).value.data.decode()
            found.setdefault(self.actor_of(thread.rpartition("-")[0]), []).append(int(partition))
        return dict(sorted(found.items()))

    def actor_of(self, consumer_id: str) -> str:
        for actor, started in self.started.items():
            if started.member.consumer_id == consumer_id:
                return actor
        return consumer_id

    def session(self, actor: str) -> int:
        """The session the actor connected to last."""
        return int(self.events(Kind.CONNECTED, actor)[-1].session or "", 16)

    def events(self, kind: Kind, actor: str) -> list[Event]:
        return [event for event in self.sink.events if event.kind is kind and event.actor == actor]

    def count(self, kind: Kind, actor: str) -> int:
        return len(self.events(kind, actor))

    def details(self, kind: Kind, actor: str, name: str) -> list[object]:
        return [event.of(name) for event in self.events(kind, actor)]

    def warnings(self, actor: str) -> list[object]:
        return self.details(Kind.WARNED, actor, "message")

    def operations(self, actor: str, since_us: int = 0) -> list[str]:
        """`op path` of everything the actor asked ZooKeeper, without the long ids."""
        found = [event for event in self.events(Kind.INVOKED, actor) if event.at_us >= since_us]
        texts = [f"{event.of('op')} {event.of('path')}" for event in found]
        for started in self.started.values():
            texts = [text.replace(started.member.consumer_id, started.actor) for text in texts]
        return texts

    def belief(self, actor: str) -> list[int]:
        """The partitions of topic t that the actor believes it owns now."""
        held: dict[int, None] = {}
        for event in self.sink.events:
            if event.actor == actor and event.topic == "t" and event.partition is not None:
                if event.kind is Kind.OWNED:
                    held[event.partition] = None
                elif event.kind is Kind.DISOWNED:
                    held.pop(event.partition, None)
        return sorted(held)

    def worked(self, actor: str, since_us: int) -> list[int]:
        """The partitions the actor worked on from `since_us` on."""
        found = [e for e in self.events(Kind.WORKED, actor) if e.at_us >= since_us]
        return sorted({event.partition for event in found if event.partition is not None})
