"""The subject of one broker and its log: a broker, and a client that writes to it and reads all in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rebalance_lab.broker.broker import BrokerSettings
from rebalance_lab.broker.calls import BrokerConfig
from rebalance_lab.broker.log.config import LogConfig
from rebalance_lab.checks.lost_write import BROKER_LOG
from rebalance_lab.client.cluster import REQUEST_TIMEOUT_MS
from rebalance_lab.client.records import ACKS_ALL
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.rest import NodeState, NodeTracker
from rebalance_lab.history.writes import CONSUME, PRODUCE, REGISTERED, REPORTED, records_of
from rebalance_lab.roles.broker import BrokerPlant, BrokerSpec
from rebalance_lab.roles.log_client import LogClientSpec
from rebalance_lab.trials.lab import START_LIMIT_MS, Lab, NodeHandle
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.stage import NodeOptions
from rebalance_lab.trials.subject import Subject
from rebalance_lab.wire.cluster import assignment_payload, configuration_payload
from rebalance_lab.wire.paths import topic_config_path, topic_path

TOPIC = "t1"
BROKER_ID = 1

#: How long a write may take on a busy machine.
WRITE_LIMIT_MS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerOptions(NodeOptions):
    """The broker of the trial. `port`: where it listens; 0: at any, another in each life."""

    port: int = 0

    def config(self, plan: Plan, _actor: str) -> BrokerConfig:
        """Its settings, but for those of its log."""
        return BrokerConfig(broker_id=BROKER_ID, controlled_shutdown_enable=False, auto_leader_rebalance_enable=False)

    def spec(self, plan: Plan, actor: str, *, connect: str, events: str) -> BrokerSpec:
        return BrokerSpec(
            actor=actor,
            host=actor,
            seed=plan.seed,
            events=events,
            plant=plan.plant,
            settings=BrokerSettings(
                config=self.config(plan, actor),
                connect=connect,
                port=self.port,
                session_timeout_ms=plan.number("session_timeout_ms"),
                log=LogConfig(
                    segment_bytes=plan.number("segment_bytes"), flush_messages=plan.number("flush_messages") or None
                ),
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions(NodeOptions):
    """The client of the trial. `acks`, `batch`, `unsynced`: see `LogClientSpec`."""

    acks: int = ACKS_ALL
    batch: int = 1
    unsynced: tuple[str, int] | None = None

    def request_timeout_ms(self, _plan: Plan) -> int:
        """How long it waits for a broker."""
        return REQUEST_TIMEOUT_MS

    def spec(self, plan: Plan, actor: str, *, connect: str, events: str) -> LogClientSpec:
        return LogClientSpec(
            actor=actor,
            host=actor,
            seed=plan.seed,
            events=events,
            connect=connect,
            session_timeout_ms=plan.number("session_timeout_ms"),
            topic=TOPIC,
            messages=plan.number("messages"),
            pause_us=plan.number("pause_us"),
            value_bytes=plan.number("value_bytes"),
            request_timeout_ms=self.request_timeout_ms(plan),
            acks=self.acks,
            batch=self.batch,
            idempotent=plan.switch("idempotent"),
            unsynced=self.unsynced,
        )


@dataclass(slots=True)
class LogTracker(NodeTracker):
    """It counts the writes that were acknowledged, sees the read at the end, and counts how often each broker has
    registered. `acknowledged_end`: the offset behind the last acknowledged record. `writes_no_more`: the first attempt
    to read has begun. `end`: the offset behind the last record that the read found."""

    acknowledged: int = 0
    acknowledged_end: int = 0
    end: int = 0
    writes_no_more: bool = False
    has_read: bool = False
    registrations: Counter[str] = field(default_factory=Counter)

    def feed(self, event: Event) -> bool:
        if event.kind is REPORTED and event.of("event") == REGISTERED:
            self.registrations[event.actor] += 1
            return True
        if event.kind is Kind.INVOKED and event.of("op") == CONSUME:
            self.writes_no_more = True
            return True
        if event.kind is Kind.OK and event.of("op") == PRODUCE:
            self.acknowledged += 1
            if event.of("offset") is not None:
                self.acknowledged_end = int(str(event.of("offset"))) + 1
            return True
        if event.kind is Kind.OK and event.of("op") == CONSUME:
            self.has_read = True
            self.end = max((offset + 1 for offset, _ in records_of(event)), default=0)
            return True
        return NodeTracker.feed(self, event)


class LogLab(Lab[Any, NodeState]):
    """The interface for scripts of one broker."""

    @property
    def writes_limit_ms(self) -> int:
        """How long all writes of the trial may take on a busy machine."""
        return START_LIMIT_MS + self.plan.number("messages") * WRITE_LIMIT_MS

    async def written(self, count: int) -> None:
        """Wait until so many writes were acknowledged."""
        limit_ms = START_LIMIT_MS + count * WRITE_LIMIT_MS
        await self.until(
            lambda: self._tracker.acknowledged >= count, f"the acknowledgement of {count} writes", limit_ms
        )

    async def all_read(self, limit_ms: int | None = None) -> None:
        """Wait until the client has read the whole log. `limit_ms`: how long at most, instead of `writes_limit_ms`."""
        await self.until(lambda: self._tracker.has_read, "the read of the whole log", limit_ms or self.writes_limit_ms)

    async def registered(self, count: int) -> None:
        """Wait until so many brokers have registered."""
        await self.until(lambda: len(self._tracker.registrations) == count, f"the registration of {count} brokers")

    async def registered_again(self, brokers: Sequence[NodeHandle[Any, NodeState]]) -> None:
        """Wait until each of these brokers has registered twice."""
        registrations = self._tracker.registrations
        names = [each.actor for each in brokers]
        await self.until(lambda: all(registrations[each] > 1 for each in names), f"the return of {', '.join(names)}")

    async def create(self, topic: str, replicas: Mapping[int, Sequence[int]], **config: str) -> None:
        """Create a topic with these replicas of its partitions, as the command line tools of 0.8 do: in ZooKeeper.
        `config`: what it overrides, with _ for each dot."""
        zookeeper = self._stage.zookeeper
        if config:
            settings = {name.replace("_", "."): value for name, value in config.items()}
            await zookeeper.create(topic_config_path(topic), configuration_payload(settings))
        await zookeeper.create(topic_path(topic), assignment_payload(replicas))

    async def unregistered(self, broker: NodeHandle[Any, NodeState]) -> None:
        """Wait until the server has ended the session of a broker that was killed: until then its id is taken."""
        await self.left(broker)

    @property
    def _tracker(self) -> LogTracker:
        tracker = self._stage.tracker
        assert isinstance(tracker, LogTracker)
        return tracker


ONE_BROKER = Subject(
    name=BROKER_LOG,
    rules=("zookeeper",),
    lab=LogLab,
    tracker=LogTracker,
    plants=(BrokerPlant,),
    words=Path(__file__).with_name("words.toml"),
    narrator=f"{__package__}.narrator",
)
