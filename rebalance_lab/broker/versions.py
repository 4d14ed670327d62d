"""The versions of APIs in a cluster whose brokers are of different releases.

A broker serves each API in the versions that its release has. It asks other brokers in those of its
`inter.broker.protocol.version`, without asking first which versions they serve: a broker closes the connection on a
request whose version it does not support. So operators raise the protocol's version once all brokers have the later
release (`kafka.controller.ControllerChannelManager`, `kafka.server.ReplicaFetcherThread`, Kafka 1.1.1;
`MetadataVersion`, 3.9.1). From 2.8 on the channel to the controller, which carries AlterPartition, is an exception: it
asks for ApiVersions, and fails without sending anything (`BrokerToControllerChannelManager`, 2.8.0). The lab's brokers
send the request there, too, as 2.7 does, and lose the connection.

In the protocol 1.1 leaders write their ISRs to ZooKeeper, followers go by the rules of KIP-101, and a controller's
requests do not say for which life of a broker they are, nor StopReplica in which leader epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

from msgspec.structs import replace

from rebalance_lab.broker.replication.rules import IsrWriter, ReplicationRules
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.messages.leader_and_isr import LeaderAndIsrRequest
from rebalance_lab.wire.kafka.messages.stop_replica import (
    StopReplicaPartitionV0,
    StopReplicaRequest,
    StopReplicaResponse,
)
from rebalance_lab.wire.kafka.messages.update_metadata import UpdateMetadataRequest
from rebalance_lab.wire.kafka.schema import Message

T = TypeVar("T", LeaderAndIsrRequest, UpdateMetadataRequest)


class ProtocolVersion(StrEnum):
    """`inter.broker.protocol.version`: how a broker asks others."""

    V1_1 = "1.1"
    V2_7 = "2.7"  # the last without topic ids

    def version_of(self, api: ApiKey) -> int:
        """The version in which an API of another broker is asked. Raises KeyError for one that there is not in this
        protocol: AlterPartition in 1.1."""
        return _ASKED[self][api]

    @property
    def isr_writer(self) -> IsrWriter:
        return IsrWriter.CONTROLLER if self is ProtocolVersion.V2_7 else IsrWriter.LEADER

    @property
    def rules(self) -> ReplicationRules:
        return ReplicationRules.KIP_320 if self is ProtocolVersion.V2_7 else ReplicationRules.KIP_101

    def messages(self, request: Message) -> Sequence[Message]:
        """What is sent to another broker for a request; it says what this protocol can say. Only StopReplica may be
        two, as in 3.9.1: before version 3 one request deletes all its replicas, or none. (1.1.1 sends one for each
        replica.)"""
        if self is ProtocolVersion.V2_7:
            return [request]
        match request:
            case LeaderAndIsrRequest():
                return [_ungrouped(request)]
            case UpdateMetadataRequest():
                return [_ungrouped(request)]
            case StopReplicaRequest():
                return _ungrouped_stops(request)
            case _:
                return [request]


class Release(StrEnum):
    """The release of Kafka whose versions of all APIs a broker serves."""

    V1_1 = "1.1"
    V3_9 = "3.9"

    @property
    def protocols(self) -> tuple[ProtocolVersion, ...]:
        """Those that it knows, of the lab's."""
        return (ProtocolVersion.V1_1,) if self is Release.V1_1 else tuple(ProtocolVersion)

    @property
    def last_versions(self) -> Mapping[ApiKey, int] | None:
        """The last version of each API that it has; None: all that the lab's brokers serve."""
        return _LAST_OF_1_1 if self is Release.V1_1 else None


#: AlterPartition has version 0 in Kafka 2.7. A broker of 3.9 with this protocol asks one of 3.9 in version 1.
_ASKED: Mapping[ProtocolVersion, Mapping[ApiKey, int]] = {
    ProtocolVersion.V1_1: {
        ApiKey.FETCH: 7,
        ApiKey.LIST_OFFSETS: 2,
        ApiKey.OFFSET_FOR_LEADER_EPOCH: 0,
        ApiKey.LEADER_AND_ISR: 1,
        ApiKey.STOP_REPLICA: 0,
        ApiKey.UPDATE_METADATA: 4,
        ApiKey.CONTROLLED_SHUTDOWN: 1,
    },
    ProtocolVersion.V2_7: {
        ApiKey.FETCH: 12,
        ApiKey.LIST_OFFSETS: 5,
        ApiKey.OFFSET_FOR_LEADER_EPOCH: 3,
        ApiKey.LEADER_AND_ISR: 4,
        ApiKey.STOP_REPLICA: 3,
        ApiKey.UPDATE_METADATA: 6,
        ApiKey.CONTROLLED_SHUTDOWN: 3,
        ApiKey.ALTER_PARTITION: 1,
    },
}

#: `org.apache.kafka.common.protocol.ApiKeys`, 1.1.1, of the APIs that the lab's brokers serve.
_LAST_OF_1_1: Mapping[ApiKey, int] = {
    ApiKey.PRODUCE: 5,
    ApiKey.FETCH: 7,
    ApiKey.LIST_OFFSETS: 2,
    ApiKey.METADATA: 5,
    ApiKey.LEADER_AND_ISR: 1,
    ApiKey.STOP_REPLICA: 0,
    ApiKey.UPDATE_METADATA: 4,
    ApiKey.CONTROLLED_SHUTDOWN: 1,
    ApiKey.FIND_COORDINATOR: 1,
    ApiKey.API_VERSIONS: 1,
    ApiKey.CREATE_TOPICS: 2,
    ApiKey.DELETE_TOPICS: 1,
    ApiKey.INIT_PRODUCER_ID: 0,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: 0,
    ApiKey.DESCRIBE_CONFIGS: 1,
    ApiKey.ALTER_CONFIGS: 0,
    ApiKey.CREATE_PARTITIONS: 0,
}


def merged(answers: Sequence[Message]) -> Message:
    """One answer to the messages that were sent for one request."""
    first, *others = answers
    for each in others:
        assert isinstance(first, StopReplicaResponse) and isinstance(each, StopReplicaResponse), "only it is sent twice"
        errors = (*first.partition_errors, *each.partition_errors)
        first = StopReplicaResponse(error_code=first.error_code or each.error_code, partition_errors=errors)
    return first


def _ungrouped(request: T) -> T:
    """Its states without the groups of topics; each names its topic."""
    states = [
        replace(state, topic_name=topic.topic_name)
        for topic in request.topic_states
        for state in topic.partition_states
    ]
    return replace(request, topic_states=(), ungrouped_partition_states=tuple(states))


def _ungrouped_stops(request: StopReplicaRequest) -> list[StopReplicaRequest]:
    """Replicas that are deleted go first (`ControllerBrokerRequestBatch.sendStopReplicaRequests`, 3.9.1)."""
    by_deletion: dict[bool, list[StopReplicaPartitionV0]] = {True: [], False: []}
    for topic in request.topic_states:
        for state in topic.partition_states:
            named = StopReplicaPartitionV0(topic_name=topic.topic_name, partition_index=state.partition_index)
            by_deletion[state.delete_partition].append(named)
    return [
        replace(request, topic_states=(), delete_partitions=deletes, ungrouped_partitions=tuple(them))
        for deletes, them in by_deletion.items()
        if them or (not deletes and not request.topic_states)  # one that names no replica
    ]
