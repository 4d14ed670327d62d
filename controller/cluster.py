"""What a controller knows of its cluster: live brokers, topics, and the state and leadership of each partition.

As `kafka.controller.ControllerContext` of Kafka 3.9.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from controller.leader_election import LeaderAndIsr
from controller.partition_states import PartitionState, check_transition
from rebalance_lab.assignors import TopicPartition


@dataclass(frozen=True, slots=True)
class LiveBroker:
    """A registered broker. `epoch`: the czxid of its registration, which tells two lives of one id apart."""

    broker_id: int
    epoch: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class Topic:
    """`replicas`: partition -> its brokers, the preferred leader first. `topic_id`: 16 bytes, zeros if it has none."""

    replicas: Mapping[int, tuple[int, ...]]
    topic_id: bytes = bytes(16)


@dataclass(frozen=True, slots=True)
class Stored:
    """A partition's leadership as its state znode holds it. `version`: the znode's."""

    leader_and_isr: LeaderAndIsr
    controller_epoch: int
    version: int


@dataclass(slots=True)
class Cluster:
    """`brokers`: those that are registered; some of them are `shutting_down`. `stored` lacks partitions whose state has
    not been written yet. `deleting`: topics that are being deleted."""

    brokers: dict[int, LiveBroker] = field(default_factory=dict)
    shutting_down: set[int] = field(default_factory=set)
    topics: dict[str, Topic] = field(default_factory=dict)
    states: dict[TopicPartition, PartitionState] = field(default_factory=dict)
    stored: dict[TopicPartition, Stored] = field(default_factory=dict)
    deleting: set[str] = field(default_factory=set)

    @property
    def live(self) -> dict[int, LiveBroker]:
        """Brokers that may lead: registered, and not shutting down."""
        return {each: broker for each, broker in self.brokers.items() if each not in self.shutting_down}

    def replicas(self, partition: TopicPartition) -> tuple[int, ...]:
        return self.topics[partition.topic].replicas[partition.partition]

    def partitions(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, each) for each in sorted(self.topics[topic].replicas)]

    def in_state(self, *states: PartitionState) -> list[TopicPartition]:
        return [each for each, state in self.states.items() if state in states]

    def change(self, partitions: Iterable[TopicPartition], target: PartitionState) -> None:
        """Raises IllegalPartitionTransition; those before it have changed then."""
        for each in partitions:
            check_transition(*each, self.states.get(each, PartitionState.NON_EXISTENT), target)
            self.states[each] = target

    def forget(self, topic: str) -> None:
        """Drop a topic that has been deleted."""
        for each in self.partitions(topic):
            del self.states[each]
            self.stored.pop(each, None)
        del self.topics[topic]
        self.deleting.discard(topic)
