"""StopReplica, API 5.

Written by `make messages` from the message definitions of Kafka 3.9.1. Do not edit.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from rebalance_lab.wire.kafka.schema import Message, read_versions, wire


class StopReplicaPartitionV0(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    topic_name: Annotated[str, wire("string", "0")]
    partition_index: Annotated[int, wire("int32", "0")]


class StopReplicaTopicV1(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    name: Annotated[str, wire("string", "1-2")]
    partition_indexes: Annotated[tuple[int, ...], wire("[]int32", "1-2")]


class StopReplicaPartitionState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    partition_index: Annotated[int, wire("int32", "3+")]
    leader_epoch: Annotated[int, wire("int32", "3+")] = -1
    delete_partition: Annotated[bool, wire("bool", "3+")]


class StopReplicaTopicState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    topic_name: Annotated[str, wire("string", "3+")]
    partition_states: Annotated[tuple[StopReplicaPartitionState, ...], wire("[]struct", "3+")]


class StopReplicaRequest(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-4")
    FLEXIBLE = read_versions("2+")

    controller_id: Annotated[int, wire("int32", "0+")]
    is_kraft_controller: Annotated[bool, wire("bool", "4+")] = False
    controller_epoch: Annotated[int, wire("int32", "0+")]
    broker_epoch: Annotated[int, wire("int64", "1+", ignorable=True)] = -1
    delete_partitions: Annotated[bool, wire("bool", "0-2")] = False
    ungrouped_partitions: Annotated[tuple[StopReplicaPartitionV0, ...], wire("[]struct", "0")] = ()
    topics: Annotated[tuple[StopReplicaTopicV1, ...], wire("[]struct", "1-2")] = ()
    topic_states: Annotated[tuple[StopReplicaTopicState, ...], wire("[]struct", "3+")] = ()


class StopReplicaPartitionError(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    topic_name: Annotated[str, wire("string", "0+")]
    partition_index: Annotated[int, wire("int32", "0+")]
    error_code: Annotated[int, wire("int16", "0+")]


class StopReplicaResponse(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-4")
    FLEXIBLE = read_versions("2+")

    error_code: Annotated[int, wire("int16", "0+")]
    partition_errors: Annotated[tuple[StopReplicaPartitionError, ...], wire("[]struct", "0+")]
