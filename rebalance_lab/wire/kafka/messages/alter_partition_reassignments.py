"""AlterPartitionReassignments, API 45.

Written by `make messages` from the message definitions of Kafka 3.9.1. Do not edit.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from rebalance_lab.wire.kafka.schema import Message, read_versions, wire


class ReassignablePartition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    partition_index: Annotated[int, wire("int32", "0+")]
    replicas: Annotated[tuple[int, ...] | None, wire("[]int32", "0+", nullable="0+")] = None


class ReassignableTopic(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    name: Annotated[str, wire("string", "0+")]
    partitions: Annotated[tuple[ReassignablePartition, ...], wire("[]struct", "0+")]


class AlterPartitionReassignmentsRequest(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0")
    FLEXIBLE = read_versions("0+")

    timeout_ms: Annotated[int, wire("int32", "0+")] = 60000
    topics: Annotated[tuple[ReassignableTopic, ...], wire("[]struct", "0+")]


class ReassignablePartitionResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    partition_index: Annotated[int, wire("int32", "0+")]
    error_code: Annotated[int, wire("int16", "0+")]
    error_message: Annotated[str | None, wire("string", "0+", nullable="0+")]


class ReassignableTopicResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    name: Annotated[str, wire("string", "0+")]
    partitions: Annotated[tuple[ReassignablePartitionResponse, ...], wire("[]struct", "0+")]


class AlterPartitionReassignmentsResponse(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0")
    FLEXIBLE = read_versions("0+")

    throttle_time_ms: Annotated[int, wire("int32", "0+")]
    error_code: Annotated[int, wire("int16", "0+")]
    error_message: Annotated[str | None, wire("string", "0+", nullable="0+")]
    responses: Annotated[tuple[ReassignableTopicResponse, ...], wire("[]struct", "0+")]
