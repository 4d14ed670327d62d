"""The requests by which a controller tells brokers of leaders and metadata, one of each kind for a broker.

As `ControllerBrokerRequestBatch` of Kafka 3.9.1: LeaderAndIsr requests go out before UpdateMetadata, and these before
StopReplica. Every leadership that is sent to replicas is also sent to all live brokers as metadata. The requests are
sent in the last versions before topic ids, so they do not say that a leader is recovering.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter

from controller.cluster import Cluster, Stored
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.wire.cluster import LEADER_DURING_DELETE, PLAINTEXT
from rebalance_lab.wire.kafka.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from rebalance_lab.wire.kafka.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from rebalance_lab.wire.kafka.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from rebalance_lab.wire.kafka.sentinels import EPOCH_DURING_DELETE

ControlRequest = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest

_SECURITY_PROTOCOL_PLAINTEXT = 0


@dataclass(frozen=True, slots=True)
class Send:
    """Send `request` to a broker, after those sent to it before."""

    broker_id: int
    request: ControlRequest


@dataclass(slots=True)
class RequestBatch:
    """What is to be sent, until `requests` is asked for. `epoch`: the controller's."""

    cluster: Cluster
    controller_id: int
    epoch: int
    _leaderships: dict[int, dict[TopicPartition, bool]] = field(default_factory=dict)
    _stops: dict[int, dict[TopicPartition, bool]] = field(default_factory=dict)
    _informed: dict[int, None] = field(default_factory=dict)
    _metadata: dict[TopicPartition, None] = field(default_factory=dict)

    def lead_or_follow(self, brokers: Iterable[int], partition: TopicPartition, *, is_new: bool = False) -> None:
        """Send the partition's leadership to replicas, and to all live brokers as metadata."""
        for broker in brokers:
            of_broker = self._leaderships.setdefault(broker, {})
            of_broker[partition] = is_new or of_broker.get(partition, False)
        self.inform(self.cluster.brokers, [partition])

    def inform(self, brokers: Iterable[int], partitions: Iterable[TopicPartition] = ()) -> None:
        """Send the live brokers, and the metadata of partitions that have a leadership. All brokers of one batch are
        sent the partitions of all."""
        self._informed.update(dict.fromkeys(brokers))
        self._metadata.update(dict.fromkeys(each for each in partitions if each in self.cluster.stored))

    def stop(self, brokers: Iterable[int], partition: TopicPartition, *, delete: bool) -> None:
        """Stop replicas, and delete them if `delete`."""
        for broker in brokers:
            of_broker = self._stops.setdefault(broker, {})
            of_broker[partition] = delete or of_broker.get(partition, False)

    def requests(self) -> list[Send]:
        """All requests to brokers that are live, in the order to send them."""
        live = self.cluster.brokers
        topic_states = self._topic_metadata()
        return [
            *(Send(each, self._leader_and_isr(each)) for each in self._leaderships if each in live),
            *(Send(each, self._update_metadata(each, topic_states)) for each in self._informed if each in live),
            *(Send(each, self._stop_replica(each)) for each in self._stops if each in live),
        ]

    # -- LeaderAndIsr -----------------------------------------------------------------------

    def _leader_and_isr(self, broker: int) -> LeaderAndIsrRequest:
        partitions = self._leaderships[broker]
        leaders = {self.cluster.stored[each].leader_and_isr.leader for each in partitions}
        return LeaderAndIsrRequest(
            controller_id=self.controller_id,
            controller_epoch=self.epoch,
            broker_epoch=self.cluster.brokers[broker].epoch,
            topic_states=tuple(
                LeaderAndIsrTopicState(
                    topic_name=topic,
                    topic_id=self.cluster.topics[topic].topic_id,
                    partition_states=tuple(self._leadership(each, is_new=partitions[each]) for each in of_topic),
                )
                for topic, of_topic in _by_topic(partitions)
            ),
            live_leaders=tuple(
                LeaderAndIsrLiveLeader(broker_id=each.broker_id, host_name=each.host, port=each.port)
                for each in self.cluster.brokers.values()
                if each.broker_id in leaders
            ),
        )

    def _leadership(self, partition: TopicPartition, *, is_new: bool) -> LeaderAndIsrPartitionState:
        stored = self.cluster.stored[partition]
        return LeaderAndIsrPartitionState(
            topic_name=partition.topic,
            partition_index=partition.partition,
            controller_epoch=stored.controller_epoch,
            leader=stored.leader_and_isr.leader,
            leader_epoch=stored.leader_and_isr.leader_epoch,
            isr=stored.leader_and_isr.isr,
            partition_epoch=stored.version,
            replicas=self.cluster.replicas(partition),
            is_new=is_new,
        )

    # -- UpdateMetadata ---------------------------------------------------------------------

    def _update_metadata(
        self, broker: int, topic_states: tuple[UpdateMetadataTopicState, ...]
    ) -> UpdateMetadataRequest:
        return UpdateMetadataRequest(
            controller_id=self.controller_id,
            controller_epoch=self.epoch,
            broker_epoch=self.cluster.brokers[broker].epoch,
            topic_states=topic_states,
            live_brokers=tuple(
                UpdateMetadataBroker(
                    id=each.broker_id,
                    v0_host=each.host,
                    v0_port=each.port,
                    endpoints=(
                        UpdateMetadataEndpoint(
                            port=each.port,
                            host=each.host,
                            listener=PLAINTEXT,
                            security_protocol=_SECURITY_PROTOCOL_PLAINTEXT,
                        ),
                    ),
                    rack=each.rack,
                )
                for each in self.cluster.brokers.values()
            ),
        )

    def _topic_metadata(self) -> tuple[UpdateMetadataTopicState, ...]:
        return tuple(
            UpdateMetadataTopicState(
                topic_name=topic,
                topic_id=self.cluster.topics[topic].topic_id,
                partition_states=tuple(self._metadata_of(each, self.cluster.stored[each]) for each in of_topic),
            )
            for topic, of_topic in _by_topic(self._metadata)
        )

    def _metadata_of(self, partition: TopicPartition, stored: Stored) -> UpdateMetadataPartitionState:
        deleting = partition.topic in self.cluster.deleting
        replicas = self.cluster.replicas(partition)
        return UpdateMetadataPartitionState(
            topic_name=partition.topic,
            partition_index=partition.partition,
            controller_epoch=stored.controller_epoch,
            leader=LEADER_DURING_DELETE if deleting else stored.leader_and_isr.leader,
            leader_epoch=0 if deleting else stored.leader_and_isr.leader_epoch,
            isr=stored.leader_and_isr.isr,
            zk_version=0 if deleting else stored.version,
            replicas=replicas,
            offline_replicas=tuple(each for each in replicas if each not in self.cluster.may_lead(partition)),
        )

    # -- StopReplica ------------------------------------------------------------------------

    def _stop_replica(self, broker: int) -> StopReplicaRequest:
        partitions = self._stops[broker]
        return StopReplicaRequest(
            controller_id=self.controller_id,
            controller_epoch=self.epoch,
            broker_epoch=self.cluster.brokers[broker].epoch,
            topic_states=tuple(
                StopReplicaTopicState(
                    topic_name=topic,
                    partition_states=tuple(
                        StopReplicaPartitionState(
                            partition_index=each.partition,
                            leader_epoch=self._epoch_to_stop(each),
                            delete_partition=partitions[each],
                        )
                        for each in of_topic
                    ),
                )
                for topic, of_topic in _by_topic(partitions)
            ),
        )

    def _epoch_to_stop(self, partition: TopicPartition) -> int:
        if partition.topic in self.cluster.deleting:
            return EPOCH_DURING_DELETE
        stored = self.cluster.stored.get(partition)
        return -1 if stored is None else stored.leader_and_isr.leader_epoch


def _by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[TopicPartition]]]:
    """The partitions of each topic, in order."""
    return [(topic, list(of_topic)) for topic, of_topic in groupby(sorted(partitions), key=itemgetter(0))]
