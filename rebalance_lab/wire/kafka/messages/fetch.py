"""Fetch, API 1.

Written by `make messages` from the message definitions of Kafka 3.9.1. Do not edit.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from rebalance_lab.wire.kafka.schema import ZERO_UUID, Message, read_versions, wire


class ReplicaState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    replica_id: Annotated[int, wire("int32", "15+")] = -1
    replica_epoch: Annotated[int, wire("int64", "15+")] = -1


class FetchPartition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    partition: Annotated[int, wire("int32", "0+")]
    current_leader_epoch: Annotated[int, wire("int32", "9+", ignorable=True)] = -1
    fetch_offset: Annotated[int, wire("int64", "0+")]
    last_fetched_epoch: Annotated[int, wire("int32", "12+")] = -1
    log_start_offset: Annotated[int, wire("int64", "5+", ignorable=True)] = -1
    partition_max_bytes: Annotated[int, wire("int32", "0+")]
    replica_directory_id: Annotated[bytes, wire("uuid", "17+", tag=0, tagged="17+", ignorable=True)] = ZERO_UUID


class FetchTopic(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    topic: Annotated[str, wire("string", "0-12", ignorable=True)] = ""
    topic_id: Annotated[bytes, wire("uuid", "13+", ignorable=True)] = ZERO_UUID
    partitions: Annotated[tuple[FetchPartition, ...], wire("[]struct", "0+")]


class ForgottenTopic(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    topic: Annotated[str, wire("string", "7-12", ignorable=True)] = ""
    topic_id: Annotated[bytes, wire("uuid", "13+", ignorable=True)] = ZERO_UUID
    partitions: Annotated[tuple[int, ...], wire("[]int32", "7+")]


class FetchRequest(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-17")
    FLEXIBLE = read_versions("12+")

    cluster_id: Annotated[str | None, wire("string", "12+", nullable="12+", tag=0, tagged="12+", ignorable=True)] = None
    replica_id: Annotated[int, wire("int32", "0-14")] = -1
    replica_state: Annotated[ReplicaState, wire("struct", "15+", tag=1, tagged="15+")] = ReplicaState()
    max_wait_ms: Annotated[int, wire("int32", "0+")]
    min_bytes: Annotated[int, wire("int32", "0+")]
    max_bytes: Annotated[int, wire("int32", "3+", ignorable=True)] = 2147483647
    isolation_level: Annotated[int, wire("int8", "4+", ignorable=True)] = 0
    session_id: Annotated[int, wire("int32", "7+", ignorable=True)] = 0
    session_epoch: Annotated[int, wire("int32", "7+", ignorable=True)] = -1
    topics: Annotated[tuple[FetchTopic, ...], wire("[]struct", "0+")]
    forgotten_topics_data: Annotated[tuple[ForgottenTopic, ...], wire("[]struct", "7+")] = ()
    rack_id: Annotated[str, wire("string", "11+", ignorable=True)] = ""


class EpochEndOffset(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    epoch: Annotated[int, wire("int32", "12+")] = -1
    end_offset: Annotated[int, wire("int64", "12+")] = -1


class LeaderIdAndEpoch(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    leader_id: Annotated[int, wire("int32", "12+")] = -1
    leader_epoch: Annotated[int, wire("int32", "12+")] = -1


class SnapshotId(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    end_offset: Annotated[int, wire("int64", "0+")] = -1
    epoch: Annotated[int, wire("int32", "0+")] = -1


class AbortedTransaction(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    producer_id: Annotated[int, wire("int64", "4+")]
    first_offset: Annotated[int, wire("int64", "4+")]


class PartitionData(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    partition_index: Annotated[int, wire("int32", "0+")]
    error_code: Annotated[int, wire("int16", "0+")]
    high_watermark: Annotated[int, wire("int64", "0+")]
    last_stable_offset: Annotated[int, wire("int64", "4+", ignorable=True)] = -1
    log_start_offset: Annotated[int, wire("int64", "5+", ignorable=True)] = -1
    diverging_epoch: Annotated[EpochEndOffset, wire("struct", "12+", tag=0, tagged="12+")] = EpochEndOffset()
    current_leader: Annotated[LeaderIdAndEpoch, wire("struct", "12+", tag=1, tagged="12+")] = LeaderIdAndEpoch()
    snapshot_id: Annotated[SnapshotId, wire("struct", "12+", tag=2, tagged="12+")] = SnapshotId()
    aborted_transactions: Annotated[
        tuple[AbortedTransaction, ...] | None, wire("[]struct", "4+", nullable="4+", ignorable=True)
    ] = ()
    preferred_read_replica: Annotated[int, wire("int32", "11+")] = -1
    records: Annotated[bytes | None, wire("records", "0+", nullable="0+")]


class FetchableTopicResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    topic: Annotated[str, wire("string", "0-12", ignorable=True)] = ""
    topic_id: Annotated[bytes, wire("uuid", "13+", ignorable=True)] = ZERO_UUID
    partitions: Annotated[tuple[PartitionData, ...], wire("[]struct", "0+")]


class NodeEndpoint(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    node_id: Annotated[int, wire("int32", "16+")]
    host: Annotated[str, wire("string", "16+")]
    port: Annotated[int, wire("int32", "16+")]
    rack: Annotated[str | None, wire("string", "16+", nullable="16+")] = None


class FetchResponse(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-17")
    FLEXIBLE = read_versions("12+")

    throttle_time_ms: Annotated[int, wire("int32", "1+", ignorable=True)] = 0
    error_code: Annotated[int, wire("int16", "7+", ignorable=True)] = 0
    session_id: Annotated[int, wire("int32", "7+")] = 0
    responses: Annotated[tuple[FetchableTopicResponse, ...], wire("[]struct", "0+")]
    node_endpoints: Annotated[tuple[NodeEndpoint, ...], wire("[]struct", "16+", tag=0, tagged="16+")] = ()
