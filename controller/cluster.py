"""What a controller knows of its cluster: live brokers, topics, the state and leadership of each partition, and the
state of each replica.

As `kafka.controller.ControllerContext` of Kafka 3.9.1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from controller.leader_election import LeaderAndIsr
from controller.states import PartitionState, ReplicaState, check_partition, check_replica
from rebalance_lab.assignors import TopicPartition, partitions_of


@dataclass(frozen=True, slots=True)
class LiveBroker:
    """A registered broker. `epoch`: the czxid of its registration, which tells two lives of one id apart."""

    broker_id: int
    epoch: int
    host: str
    port: int
    rack: str | None = None


class Assignment(msgspec.Struct, frozen=True, gc=False):
    """The replicas of a partition, the preferred leader first. While the partition is reassigned they are those that it
    is to have, then those that it is to lose; `adding` and `removing` say which are new and which go
    (`kafka.controller.ReplicaAssignment`, 3.9.1)."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def origin(self) -> tuple[int, ...]:
        """Those that it had. Not in their old order, if some of them stay."""
        return _without(self.replicas, self.adding)

    @property
    def target(self) -> tuple[int, ...]:
        """Those that it is to have."""
        return _without(self.replicas, self.removing)

    @property
    def is_reassigned(self) -> bool:
        """Whether it is being reassigned."""
        return bool(self.adding or self.removing)

    def reassigned_to(self, target: Sequence[int]) -> Assignment:
        """From what it had before any reassignment to other replicas."""
        origin = self.origin
        replicas = tuple(dict.fromkeys((*target, *origin)))
        return Assignment(replicas, _without(replicas, origin), _without(replicas, target))


@dataclass(frozen=True, slots=True)
class Topic:
    """`replicas`: partition -> its brokers, the preferred leader first. `topic_id`: 16 bytes, zeros if it has none.
    `adding`, `removing`: of partitions that are being reassigned, as `Assignment` has them."""

    replicas: Mapping[int, tuple[int, ...]]
    topic_id: bytes = bytes(16)
    adding: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    removing: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    @property
    def reassigned(self) -> set[int]:
        """The partitions that are being reassigned."""
        return {each for each, its in (*self.adding.items(), *self.removing.items()) if its}

    def assignment(self, partition: int) -> Assignment:
        replicas = self.replicas[partition]
        return Assignment(replicas, self.adding.get(partition, ()), self.removing.get(partition, ()))

    def with_assignments(self, changed: Mapping[int, Assignment]) -> Topic:
        """The topic with other assignments of some partitions."""
        adding = {**self.adding, **{each: found.adding for each, found in changed.items()}}
        removing = {**self.removing, **{each: found.removing for each, found in changed.items()}}
        return Topic(
            {**self.replicas, **{each: found.replicas for each, found in changed.items()}},
            self.topic_id,
            {each: its for each, its in adding.items() if its},
            {each: its for each, its in removing.items() if its},
        )


class Replica(NamedTuple):
    """A broker's replica of a partition."""

    partition: TopicPartition
    broker_id: int


class Stored(msgspec.Struct, frozen=True, gc=False):
    """A partition's leadership as its state znode holds it. `version`: the znode's."""

    leader_and_isr: LeaderAndIsr
    controller_epoch: int
    version: int


def was_written(known: Stored, found: Stored, epoch: int) -> bool:
    """Whether a write of the controller of `epoch` was refused because of a write of its own. Brokers have not heard of
    that one if its reply was lost. `known`, `found`: the state before it, and the one that is there. Only controllers
    raise leader epochs."""
    return found.controller_epoch == epoch and found.leader_and_isr.leader_epoch > known.leader_and_isr.leader_epoch


@dataclass(slots=True)
class Cluster:
    """`brokers`: those that are registered; some of them are `shutting_down`. `failed`: broker -> its replicas whose
    disk has failed. `stored` lacks partitions whose state has not been written yet; `changed` are those whose
    leadership is another one since somebody has last looked, in their order. `deleting`: topics that are to be deleted.
    `reassigning`: partitions that are being reassigned. `replica_states`: partition -> broker -> state; partitions may
    share one mapping."""

    brokers: dict[int, LiveBroker] = field(default_factory=dict)
    shutting_down: set[int] = field(default_factory=set)
    failed: dict[int, set[TopicPartition]] = field(default_factory=dict)
    topics: dict[str, Topic] = field(default_factory=dict)
    states: dict[TopicPartition, PartitionState] = field(default_factory=dict)
    replica_states: dict[TopicPartition, Mapping[int, ReplicaState]] = field(default_factory=dict)
    stored: dict[TopicPartition, Stored] = field(default_factory=dict)
    changed: dict[TopicPartition, None] = field(default_factory=dict)
    deleting: set[str] = field(default_factory=set)
    reassigning: set[TopicPartition] = field(default_factory=set)

    @property
    def live(self) -> dict[int, LiveBroker]:
        """Brokers that may lead: registered, and not shutting down."""
        return {each: broker for each, broker in self.brokers.items() if each not in self.shutting_down}

    def store(self, partition: TopicPartition, stored: Stored) -> None:
        """Take this for the state of a partition."""
        before = self.stored.get(partition)
        if before is None or before.leader_and_isr != stored.leader_and_isr:
            self.changed[partition] = None
        self.stored[partition] = stored

    def is_online(self, broker_id: int, partition: TopicPartition) -> bool:
        """Whether the broker is registered, and the disk of its replica has not failed."""
        return broker_id in self.brokers and partition not in self.failed.get(broker_id, ())

    def may_lead(self, partition: TopicPartition) -> tuple[int, ...]:
        """The replicas that may lead, in the order of the assignment: online, and not shutting down."""
        replicas = self.replicas(partition)
        return tuple(each for each in replicas if self.is_online(each, partition) and each not in self.shutting_down)

    def replicas(self, partition: TopicPartition) -> tuple[int, ...]:
        return self.topics[partition.topic].replicas[partition.partition]

    def brokers_of(self, topic: str) -> set[int]:
        """All that have a replica of the topic."""
        return {broker for replicas in self.topics[topic].replicas.values() for broker in replicas}

    def assignment(self, partition: TopicPartition) -> Assignment:
        return self.topics[partition.topic].assignment(partition.partition)

    def is_dying(self, partition: TopicPartition) -> bool:
        """Whether its topic is being deleted, which begins once its partitions have been reassigned. Kafka elects no
        leader before that either, so that neither ends if the leader dies meanwhile."""
        return partition.topic in self.deleting and partition not in self.reassigning

    def partitions(self, topic: str) -> list[TopicPartition]:
        return partitions_of(topic, sorted(self.topics[topic].replicas))

    def in_state(self, *states: PartitionState) -> list[TopicPartition]:
        return [each for each, state in self.states.items() if state in states]

    def change(self, partitions: Iterable[TopicPartition], target: PartitionState) -> None:
        """Raises IllegalTransition; those before it have changed then."""
        for each in partitions:
            check_partition(each, self.states.get(each, PartitionState.NON_EXISTENT), target)
            self.states[each] = target

    def change_replicas(self, replicas: Iterable[Replica], target: ReplicaState) -> None:
        """Raises IllegalTransition; those before it have changed then."""
        for partition, broker in replicas:
            states = self.replica_states.get(partition, {})
            check_replica(partition, broker, states.get(broker, ReplicaState.NON_EXISTENT), target)
            self.replica_states[partition] = {**states, broker: target}

    def drop_replicas(self, partition: TopicPartition, brokers: Iterable[int]) -> None:
        """Forget replicas that have been deleted."""
        dropped, states = set(brokers), self.replica_states[partition]
        self.replica_states[partition] = {each: state for each, state in states.items() if each not in dropped}

    def replicas_in(self, partitions: Iterable[TopicPartition], *states: ReplicaState) -> list[Replica]:
        """The replicas of these partitions that are in one of these states."""
        return [
            Replica(partition, broker)
            for partition in partitions
            for broker, state in self.replica_states.get(partition, {}).items()
            if state in states
        ]

    def forget(self, topic: str) -> None:
        """Drop a topic that has been deleted."""
        for each in self.partitions(topic):
            del self.states[each]
            self.replica_states.pop(each, None)
            self.stored.pop(each, None)
            self.changed.pop(each, None)
            self.reassigning.discard(each)
            for failed in self.failed.values():
                failed.discard(each)
        del self.topics[topic]
        self.deleting.discard(topic)


def _without(replicas: Sequence[int], others: Collection[int]) -> tuple[int, ...]:
    return tuple(each for each in replicas if each not in others)
