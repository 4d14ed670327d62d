"""The APIs that the lab knows: keys, names, messages, and with them the versions.

Written by `make messages` from the message definitions of Kafka 3.9.1. Do not edit.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from rebalance_lab.wire.kafka.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from rebalance_lab.wire.kafka.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from rebalance_lab.wire.kafka.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from rebalance_lab.wire.kafka.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from rebalance_lab.wire.kafka.messages.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse
from rebalance_lab.wire.kafka.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from rebalance_lab.wire.kafka.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from rebalance_lab.wire.kafka.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from rebalance_lab.wire.kafka.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from rebalance_lab.wire.kafka.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from rebalance_lab.wire.kafka.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from rebalance_lab.wire.kafka.messages.fetch import FetchRequest, FetchResponse
from rebalance_lab.wire.kafka.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from rebalance_lab.wire.kafka.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from rebalance_lab.wire.kafka.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from rebalance_lab.wire.kafka.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from rebalance_lab.wire.kafka.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from rebalance_lab.wire.kafka.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from rebalance_lab.wire.kafka.messages.metadata import MetadataRequest, MetadataResponse
from rebalance_lab.wire.kafka.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from rebalance_lab.wire.kafka.messages.produce import ProduceRequest, ProduceResponse
from rebalance_lab.wire.kafka.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from rebalance_lab.wire.kafka.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from rebalance_lab.wire.kafka.schema import Message, Versions


class ApiKey(IntEnum):
    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    STOP_REPLICA = 5
    UPDATE_METADATA = 6
    CONTROLLED_SHUTDOWN = 7
    FIND_COORDINATOR = 10
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    CREATE_PARTITIONS = 37
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    ALTER_PARTITION = 56
    DESCRIBE_CLUSTER = 60


class Api(NamedTuple):
    name: str
    request: type[Message]
    response: type[Message]

    @property
    def versions(self) -> Versions:
        return self.request.VERSIONS


APIS = {
    ApiKey.PRODUCE: Api("Produce", ProduceRequest, ProduceResponse),
    ApiKey.FETCH: Api("Fetch", FetchRequest, FetchResponse),
    ApiKey.LIST_OFFSETS: Api("ListOffsets", ListOffsetsRequest, ListOffsetsResponse),
    ApiKey.METADATA: Api("Metadata", MetadataRequest, MetadataResponse),
    ApiKey.LEADER_AND_ISR: Api("LeaderAndIsr", LeaderAndIsrRequest, LeaderAndIsrResponse),
    ApiKey.STOP_REPLICA: Api("StopReplica", StopReplicaRequest, StopReplicaResponse),
    ApiKey.UPDATE_METADATA: Api("UpdateMetadata", UpdateMetadataRequest, UpdateMetadataResponse),
    ApiKey.CONTROLLED_SHUTDOWN: Api("ControlledShutdown", ControlledShutdownRequest, ControlledShutdownResponse),
    ApiKey.FIND_COORDINATOR: Api("FindCoordinator", FindCoordinatorRequest, FindCoordinatorResponse),
    ApiKey.API_VERSIONS: Api("ApiVersions", ApiVersionsRequest, ApiVersionsResponse),
    ApiKey.CREATE_TOPICS: Api("CreateTopics", CreateTopicsRequest, CreateTopicsResponse),
    ApiKey.DELETE_TOPICS: Api("DeleteTopics", DeleteTopicsRequest, DeleteTopicsResponse),
    ApiKey.INIT_PRODUCER_ID: Api("InitProducerId", InitProducerIdRequest, InitProducerIdResponse),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Api(
        "OffsetForLeaderEpoch", OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
    ),
    ApiKey.DESCRIBE_CONFIGS: Api("DescribeConfigs", DescribeConfigsRequest, DescribeConfigsResponse),
    ApiKey.ALTER_CONFIGS: Api("AlterConfigs", AlterConfigsRequest, AlterConfigsResponse),
    ApiKey.CREATE_PARTITIONS: Api("CreatePartitions", CreatePartitionsRequest, CreatePartitionsResponse),
    ApiKey.ELECT_LEADERS: Api("ElectLeaders", ElectLeadersRequest, ElectLeadersResponse),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Api(
        "IncrementalAlterConfigs", IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Api(
        "AlterPartitionReassignments", AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Api(
        "ListPartitionReassignments", ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse
    ),
    ApiKey.ALTER_PARTITION: Api("AlterPartition", AlterPartitionRequest, AlterPartitionResponse),
    ApiKey.DESCRIBE_CLUSTER: Api("DescribeCluster", DescribeClusterRequest, DescribeClusterResponse),
}
