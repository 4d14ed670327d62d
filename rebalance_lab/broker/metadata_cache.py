"""What a broker knows of its cluster, as the controller has told it (`kafka.server.metadata.ZkMetadataCache`, 3.9.1).

Every broker holds the same cache, a moment apart. Clients are answered from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.observe import Observe
from rebalance_lab.kernel import Future
from rebalance_lab.wire.cluster import LEADER_DURING_DELETE, NO_LEADER
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.metadata import MetadataResponsePartition, MetadataResponseTopic
from rebalance_lab.wire.kafka.messages.update_metadata import UpdateMetadataPartitionState, UpdateMetadataRequest
from rebalance_lab.wire.kafka.schema import ZERO_UUID
from rebalance_lab.wire.topic_filter import INTERNAL_TOPICS

_PLAINTEXT = 0


@dataclass(frozen=True, slots=True)
class Node:
    """A live broker, and where clients reach it."""

    broker_id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(slots=True)
class CachedTopic:
    topic_id: bytes = ZERO_UUID
    partitions: dict[int, UpdateMetadataPartitionState] = field(default_factory=dict)


class MetadataCache:
    """`controller_id`: the broker that has sent the last update; None before the first. `observe`: is called
    with what trials record. `keeps_isrs`: True plants a bug: an update with the leader that is known changes nothing.

    `changed` is done at the next update; another future follows it.
    """

    def __init__(self, observe: Observe, *, keeps_isrs: bool = False) -> None:
        self._observe = observe
        self._keeps_isrs = keeps_isrs
        self.controller_id: int | None = None
        self.nodes: dict[int, Node] = {}
        self.topics: dict[str, CachedTopic] = {}
        self.changed: Future[None] = Future("a metadata update")

    def update(self, request: UpdateMetadataRequest) -> None:
        """Live brokers are replaced, partitions merged. A partition that is being deleted goes."""
        self.controller_id = request.controller_id
        known, self.nodes = self.nodes, {each.broker_id: each for each in _nodes(request)}
        if self.nodes.keys() != known.keys():
            self._observe("brokers-known", None, {"brokers": sorted(self.nodes)})
        for topic in request.topic_states:
            for each in topic.partition_states:
                self._update(topic.topic_name, topic.topic_id, each)
        for each in request.ungrouped_partition_states:
            self._update(each.topic_name, ZERO_UUID, each)
        changed, self.changed = self.changed, Future("a metadata update")
        changed.set(None)

    def _update(self, topic: str, topic_id: bytes, state: UpdateMetadataPartitionState) -> None:
        cached = self.topics.setdefault(topic, CachedTopic())
        cached.topic_id = topic_id
        if state.leader == LEADER_DURING_DELETE:
            if cached.partitions.pop(state.partition_index, None) is not None:
                self._observe("metadata-forgotten", TopicPartition(topic, state.partition_index), {})
        else:
            known = cached.partitions.get(state.partition_index)
            if self._keeps_isrs and known is not None and known.leader == state.leader:
                return
            cached.partitions[state.partition_index] = state
            self._observe_partition(topic, known, state)
        if not cached.partitions:
            del self.topics[topic]

    def _observe_partition(
        self, topic: str, known: UpdateMetadataPartitionState | None, state: UpdateMetadataPartitionState
    ) -> None:
        """Record what this broker says of a partition from now on, if that is new."""
        now = {"leader": state.leader, "leader_epoch": state.leader_epoch, "isr": state.isr}
        if known is None or (known.leader, known.leader_epoch, known.isr) != tuple(now.values()):
            self._observe("metadata-known", TopicPartition(topic, state.partition_index), now)

    def has(self, partition: TopicPartition) -> bool:
        """Whether the cluster has such a partition."""
        cached = self.topics.get(partition.topic)
        return cached is not None and partition.partition in cached.partitions

    def leader_of(self, topic: str, partition: int) -> int | None:
        """The live broker that leads; None if there is none, or no such partition."""
        cached = self.topics.get(topic)
        state = cached.partitions.get(partition) if cached is not None else None
        return state.leader if state is not None and state.leader in self.nodes else None

    def described(self, topic: str, *, version: int) -> MetadataResponseTopic | None:
        """The topic as a Metadata response of `version` describes it; None if it is not there.

        Version 0 leaves dead replicas out, and calls that an error.
        """
        cached = self.topics.get(topic)
        if cached is None:
            return None
        return MetadataResponseTopic(
            error_code=ErrorCode.NONE,
            name=topic,
            topic_id=cached.topic_id,
            is_internal=topic in INTERNAL_TOPICS,
            partitions=tuple(
                self._described(state, live_only=version == 0) for _, state in sorted(cached.partitions.items())
            ),
        )

    def _described(self, state: UpdateMetadataPartitionState, *, live_only: bool) -> MetadataResponsePartition:
        replicas = tuple(each for each in state.replicas if not live_only or each in self.nodes)
        isr = tuple(each for each in state.isr if not live_only or each in self.nodes)
        error = ErrorCode.NONE
        if state.leader not in self.nodes:
            error = ErrorCode.LEADER_NOT_AVAILABLE
        elif len(replicas) < len(state.replicas) or len(isr) < len(state.isr):
            error = ErrorCode.REPLICA_NOT_AVAILABLE
        return MetadataResponsePartition(
            error_code=error,
            partition_index=state.partition_index,
            leader_id=state.leader if state.leader in self.nodes else NO_LEADER,
            leader_epoch=state.leader_epoch,
            replica_nodes=replicas,
            isr_nodes=isr,
            offline_replicas=state.offline_replicas,
        )


def _nodes(request: UpdateMetadataRequest) -> Iterator[Node]:
    """The brokers that have a plaintext endpoint. Only version 0 lacks endpoints."""
    for each in request.live_brokers:
        plain = next((end for end in each.endpoints if end.security_protocol == _PLAINTEXT), None)
        if plain is not None:
            yield Node(each.id, plain.host, plain.port, each.rack)
        elif not each.endpoints and each.v0_host:
            yield Node(each.id, each.v0_host, each.v0_port, each.rack)
