"""Produce, API 0.

Written by `make messages` from the message definitions of Kafka 3.9.1. Do not edit.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from rebalance_lab.wire.kafka.schema import Message, read_versions, wire


class PartitionProduceData(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    index: Annotated[int, wire("int32", "0+")]
    records: Annotated[bytes | None, wire("records", "0+", nullable="0+")]


class TopicProduceData(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    name: Annotated[str, wire("string", "0+")]
    partition_data: Annotated[tuple[PartitionProduceData, ...], wire("[]struct", "0+")]


class ProduceRequest(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-11")
    FLEXIBLE = read_versions("9+")

    transactional_id: Annotated[str | None, wire("string", "3+", nullable="3+")] = None
    acks: Annotated[int, wire("int16", "0+")]
    timeout_ms: Annotated[int, wire("int32", "0+")]
    topic_data: Annotated[tuple[TopicProduceData, ...], wire("[]struct", "0+")]


class BatchIndexAndErrorMessage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    batch_index: Annotated[int, wire("int32", "8+")]
    batch_index_error_message: Annotated[str | None, wire("string", "8+", nullable="8+")] = None


class LeaderIdAndEpoch(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    leader_id: Annotated[int, wire("int32", "10+")] = -1
    leader_epoch: Annotated[int, wire("int32", "10+")] = -1


class PartitionProduceResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    index: Annotated[int, wire("int32", "0+")]
    error_code: Annotated[int, wire("int16", "0+")]
    base_offset: Annotated[int, wire("int64", "0+")]
    log_append_time_ms: Annotated[int, wire("int64", "2+", ignorable=True)] = -1
    log_start_offset: Annotated[int, wire("int64", "5+", ignorable=True)] = -1
    record_errors: Annotated[tuple[BatchIndexAndErrorMessage, ...], wire("[]struct", "8+", ignorable=True)] = ()
    error_message: Annotated[str | None, wire("string", "8+", nullable="8+", ignorable=True)] = None
    current_leader: Annotated[LeaderIdAndEpoch, wire("struct", "10+", tag=0, tagged="10+")] = LeaderIdAndEpoch()


class TopicProduceResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    name: Annotated[str, wire("string", "0+")]
    partition_responses: Annotated[tuple[PartitionProduceResponse, ...], wire("[]struct", "0+")]


class NodeEndpoint(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    node_id: Annotated[int, wire("int32", "10+")]
    host: Annotated[str, wire("string", "10+")]
    port: Annotated[int, wire("int32", "10+")]
    rack: Annotated[str | None, wire("string", "10+", nullable="10+")] = None


class ProduceResponse(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-11")
    FLEXIBLE = read_versions("9+")

    responses: Annotated[tuple[TopicProduceResponse, ...], wire("[]struct", "0+")]
    throttle_time_ms: Annotated[int, wire("int32", "1+", ignorable=True)] = 0
    node_endpoints: Annotated[tuple[NodeEndpoint, ...], wire("[]struct", "10+", tag=0, tagged="10+")] = ()
