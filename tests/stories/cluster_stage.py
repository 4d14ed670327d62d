"""A stage for stories about several brokers: ZooKeeper, network and disks are simulated; a client asks any of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Self

from controller_stage import CONNECT
from controller_stage import Stage as Controllers

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.broker import Broker, BrokerSettings
from rebalance_lab.broker.calls import BrokerConfig
from rebalance_lab.broker.log.config import LogConfig
from rebalance_lab.broker.partition import Partition
from rebalance_lab.kernel import Flag, Process, TimedOut
from rebalance_lab.wire.cluster import LeaderIsrAndControllerEpoch, read_state
from rebalance_lab.wire.kafka.calls import Call, KafkaCodec
from rebalance_lab.wire.kafka.frames import key_of
from rebalance_lab.wire.kafka.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from rebalance_lab.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from rebalance_lab.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rebalance_lab.wire.kafka.records import Record, batches, build_batch, records
from rebalance_lab.wire.kafka.schema import Message
from rebalance_lab.wire.paths import broker_path, partition_state_path
from rebalance_lab.world.network import Address, Connection
from rebalance_lab.world.ports import Environment

T0 = TopicPartition("t", 0)


class RunningBroker:
    """One life of a broker."""

    def __init__(self, stage: ClusterStage, broker_id: int) -> None:
        self.process: Process = stage.tasks.process(f"b{broker_id}")
        self.closing: Flag = stage.tasks.flag(f"close broker {broker_id}")
        self.reports: list[tuple[str, dict[str, object]]] = []
        self.has_ended = False
        settings = BrokerSettings(
            config=BrokerConfig(broker_id=broker_id, **{**stage.config, **stage.of.get(broker_id, {})}),
            connect=CONNECT,
            port=9092,
            session_timeout_ms=2000,
            log=stage.log,
        )
        self.broker = Broker(stage.world.environment(f"b{broker_id}", self.process), settings, self._report)

    def _report(self, event: str, detail: dict[str, object]) -> None:
        self.reports.append((event, detail))

    def said(self, event: str) -> list[dict[str, object]]:
        return [detail for each, detail in self.reports if each == event]

    def replica(self, partition: TopicPartition = T0) -> Partition:
        return self.broker.parts.replicas.all[partition]


class ClusterStage:
    """`play(story)` runs `async def story(stage)` once the brokers are registered and know each other. `of`: what some
    brokers have in place of `config`. `seed` 0: messages pass as bytes."""

    def __init__(
        self,
        brokers: Sequence[int] = (1, 2, 3),
        *,
        seed: int = 1,
        log: LogConfig | None = None,
        of: Mapping[int, Mapping[str, Any]] | None = None,
        **config: Any,
    ) -> None:
        self.config = config
        self.of = of or {}
        self.log = log or LogConfig()
        self._ids = tuple(brokers)
        self._stage = Controllers(seed)
        self.tasks = self._stage.tasks
        self.world = self._stage.world
        self.server = self._stage.server
        self.zookeeper = self._stage.other
        self.brokers: dict[int, RunningBroker] = {}
        self._client: Environment
        self._open: dict[int, Connection[Call, Message]] = {}

    def play(self, story: Callable[[Self], Awaitable[None]]) -> None:
        async def run(stage: Controllers) -> None:
            self._client = stage.world.environment("client", stage.tasks.process("client"))
            async with stage.tasks.scope("brokers") as scope:
                self._scope = scope
                for each in self._ids:
                    await self.start(each)
                await self.until(lambda: all(self._knows_all(each) for each in self.brokers), "metadata")
                await story(self)
                scope.cancel("the story has ended")

        self._stage.play(run)

    def _knows_all(self, broker_id: int) -> bool:
        broker = self.brokers[broker_id].broker
        return hasattr(broker, "parts") and set(broker.parts.metadata.nodes) == set(self._ids)

    async def start(self, broker_id: int) -> None:
        """Start a broker, also again after its end, once its former session has ended."""
        while await self._stage.there(broker_path(broker_id)):
            await self.tasks.sleep(5_000)
        running = self.brokers[broker_id] = RunningBroker(self, broker_id)
        self._scope.spawn(self._run(running), f"broker {broker_id}")

    async def _run(self, running: RunningBroker) -> None:
        await self.tasks.spawn(running.broker.run(running.closing), "broker", process=running.process)
        running.has_ended = True

    def kill(self, broker_id: int) -> None:
        self.brokers[broker_id].process.kill()

    async def until(self, ready: Callable[[], bool], what: str, timeout_ms: int = 60_000) -> None:
        try:
            async with self.tasks.timeout(timeout_ms * 1000, what):
                while not ready():
                    await self.tasks.sleep(5_000)
        except TimedOut:
            raise AssertionError(f"{what} did not come in {timeout_ms} ms") from None

    def controller(self) -> int:
        """The last that was elected, of those that live."""
        reigns = [
            (said[-1]["epoch"], each)
            for each, running in self.brokers.items()
            if (said := running.said("elected")) and not running.has_ended
        ]
        return max(reigns)[1]

    def leads(self, broker_id: int, partition: TopicPartition = T0) -> bool:
        replica = self.brokers[broker_id].broker.parts.replicas.all.get(partition)
        return replica is not None and replica.leadership is not None

    # -- what is there ----------------------------------------------------------------------

    async def state(self, partition: TopicPartition = T0) -> LeaderIsrAndControllerEpoch:
        data = await self._stage.data(partition_state_path(*partition))
        return read_state(*partition, data)

    async def until_state(
        self, ready: Callable[[LeaderIsrAndControllerEpoch], bool], partition: TopicPartition = T0
    ) -> LeaderIsrAndControllerEpoch:
        for _ in range(20_000):
            found = await self.state(partition)
            if ready(found):
                return found
            await self.tasks.sleep(5_000)
        raise AssertionError(f"the state stays {found}")

    async def read_log(self, broker_id: int, partition: TopicPartition = T0) -> list[str]:
        log = self.brokers[broker_id].replica(partition).log
        found = await log.read(log.start_offset, 1 << 20)
        return [(each.value or b"").decode() for at, _ in batches(found.data) for each in records(found.data, at)]

    # -- requests ---------------------------------------------------------------------------

    async def ask(self, broker_id: int, message: Message, version: int, *, timeout_us: int = 60_000_000) -> Any:
        """In this version, or the last that the broker serves."""
        served = self.brokers[broker_id].broker.parts.advertised
        version = min(version, served[key_of(type(message))].last)
        connection = self._open.get(broker_id)
        if connection is None or connection.ended.done:
            connection = await self._client.network.connect(
                Address(f"host-b{broker_id}", 9092), KafkaCodec(), timeout_us=1_000_000
            )
            self._open[broker_id] = connection
        return await connection.request(Call.of(message, version, "c"), timeout_us=timeout_us)

    async def create(self, replicas: Sequence[int], **configs: str) -> None:
        """Topic `t` with one partition on these brokers."""
        topic = CreatableTopic(
            name="t",
            num_partitions=-1,
            replication_factor=-1,
            assignments=(CreatableReplicaAssignment(partition_index=0, broker_ids=tuple(replicas)),),
            configs=tuple(
                CreatableTopicConfig(name=name.replace("_", "."), value=value) for name, value in configs.items()
            ),
        )
        created = await self.ask(self._ids[0], CreateTopicsRequest(topics=(topic,), timeout_ms=10_000), 6)
        if created.topics[0].error_code == 41:
            controller = next(each for each, running in self.brokers.items() if running.said("elected"))
            created = await self.ask(controller, CreateTopicsRequest(topics=(topic,), timeout_ms=10_000), 6)
        assert created.topics[0].error_code == 0, created

    async def produce(self, broker_id: int, *values: str, acks: int = -1, timeout_ms: int = 30_000) -> Any:
        """The answer for the one partition."""
        data = build_batch([Record(None, each.encode(), 1000) for each in values])
        wanted = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=data),))
        request = ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=(wanted,))
        return (await self.ask(broker_id, request, 9)).responses[0].partition_responses[0]

    async def fetch(self, broker_id: int, offset: int, **more: Any) -> Any:
        """The answer for the one partition."""
        partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20, **more)
        request = FetchRequest(max_wait_ms=0, min_bytes=1, topics=(FetchTopic(topic="t", partitions=(partition,)),))
        return (await self.ask(broker_id, request, 12)).responses[0].partitions[0]
