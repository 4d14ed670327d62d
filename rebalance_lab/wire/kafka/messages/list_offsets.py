"""ListOffsets, API 2.

Written by `make messages` from the message definitions of Kafka 3.9.1. Do not edit.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from rebalance_lab.wire.kafka.schema import Message, read_versions, wire


class ListOffsetsPartition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    partition_index: Annotated[int, wire("int32", "0+")]
    current_leader_epoch: Annotated[int, wire("int32", "4+", ignorable=True)] = -1
    timestamp_ms: Annotated[int, wire("int64", "0+")]
    max_num_offsets: Annotated[int, wire("int32", "0")] = 1


class ListOffsetsTopic(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    name: Annotated[str, wire("string", "0+")]
    partitions: Annotated[tuple[ListOffsetsPartition, ...], wire("[]struct", "0+")]


class ListOffsetsRequest(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-9")
    FLEXIBLE = read_versions("6+")

    replica_id: Annotated[int, wire("int32", "0+")]
    isolation_level: Annotated[int, wire("int8", "2+")] = 0
    topics: Annotated[tuple[ListOffsetsTopic, ...], wire("[]struct", "0+")]


class ListOffsetsPartitionResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    partition_index: Annotated[int, wire("int32", "0+")]
    error_code: Annotated[int, wire("int16", "0+")]
    old_style_offsets: Annotated[tuple[int, ...], wire("[]int64", "0")] = ()
    timestamp_ms: Annotated[int, wire("int64", "1+")] = -1
    offset: Annotated[int, wire("int64", "1+")] = -1
    leader_epoch: Annotated[int, wire("int32", "4+")] = -1


class ListOffsetsTopicResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    name: Annotated[str, wire("string", "0+")]
    partitions: Annotated[tuple[ListOffsetsPartitionResponse, ...], wire("[]struct", "0+")]


class ListOffsetsResponse(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-9")
    FLEXIBLE = read_versions("6+")

    throttle_time_ms: Annotated[int, wire("int32", "2+", ignorable=True)] = 0
    topics: Annotated[tuple[ListOffsetsTopicResponse, ...], wire("[]struct", "0+")]
