"""ElectLeaders, API 43.

Written by `make messages` from the message definitions of Kafka 3.9.1. Do not edit.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from rebalance_lab.wire.kafka.schema import Message, read_versions, wire


class TopicPartitions(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    topic: Annotated[str, wire("string", "0+")]
    partitions: Annotated[tuple[int, ...], wire("[]int32", "0+")]


class ElectLeadersRequest(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-2")
    FLEXIBLE = read_versions("2+")

    election_type: Annotated[int, wire("int8", "1+")] = 0
    topic_partitions: Annotated[tuple[TopicPartitions, ...] | None, wire("[]struct", "0+", nullable="0+")]
    timeout_ms: Annotated[int, wire("int32", "0+")] = 60000


class PartitionResult(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    partition_id: Annotated[int, wire("int32", "0+")]
    error_code: Annotated[int, wire("int16", "0+")]
    error_message: Annotated[str | None, wire("string", "0+", nullable="0+")]


class ReplicaElectionResult(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    topic: Annotated[str, wire("string", "0+")]
    partition_result: Annotated[tuple[PartitionResult, ...], wire("[]struct", "0+")]


class ElectLeadersResponse(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-2")
    FLEXIBLE = read_versions("2+")

    throttle_time_ms: Annotated[int, wire("int32", "0+")]
    error_code: Annotated[int, wire("int16", "1+")] = 0
    replica_election_results: Annotated[tuple[ReplicaElectionResult, ...], wire("[]struct", "0+")]
