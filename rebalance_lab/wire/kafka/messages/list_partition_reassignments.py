"""ListPartitionReassignments, API 46.

Written by `make messages` from the message definitions of Kafka 3.9.1. Do not edit.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from rebalance_lab.wire.kafka.schema import Message, read_versions, wire


class ListPartitionReassignmentsTopics(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    name: Annotated[str, wire("string", "0+")]
    partition_indexes: Annotated[tuple[int, ...], wire("[]int32", "0+")]


class ListPartitionReassignmentsRequest(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0")
    FLEXIBLE = read_versions("0+")

    timeout_ms: Annotated[int, wire("int32", "0+")] = 60000
    topics: Annotated[tuple[ListPartitionReassignmentsTopics, ...] | None, wire("[]struct", "0+", nullable="0+")] = None


class OngoingPartitionReassignment(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    partition_index: Annotated[int, wire("int32", "0+")]
    replicas: Annotated[tuple[int, ...], wire("[]int32", "0+")]
    adding_replicas: Annotated[tuple[int, ...], wire("[]int32", "0+")]
    removing_replicas: Annotated[tuple[int, ...], wire("[]int32", "0+")]


class OngoingTopicReassignment(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    name: Annotated[str, wire("string", "0+")]
    partitions: Annotated[tuple[OngoingPartitionReassignment, ...], wire("[]struct", "0+")]


class ListPartitionReassignmentsResponse(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0")
    FLEXIBLE = read_versions("0+")

    throttle_time_ms: Annotated[int, wire("int32", "0+")]
    error_code: Annotated[int, wire("int16", "0+")]
    error_message: Annotated[str | None, wire("string", "0+", nullable="0+")]
    topics: Annotated[tuple[OngoingTopicReassignment, ...], wire("[]struct", "0+")]
