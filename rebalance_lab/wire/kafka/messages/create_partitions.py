"""CreatePartitions, API 37.

Written by `make messages` from the message definitions of Kafka 3.9.1. Do not edit.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from rebalance_lab.wire.kafka.schema import Message, read_versions, wire


class CreatePartitionsAssignment(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    broker_ids: Annotated[tuple[int, ...], wire("[]int32", "0+")]


class CreatePartitionsTopic(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    name: Annotated[str, wire("string", "0+")]
    count: Annotated[int, wire("int32", "0+")]
    assignments: Annotated[tuple[CreatePartitionsAssignment, ...] | None, wire("[]struct", "0+", nullable="0+")]


class CreatePartitionsRequest(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-3")
    FLEXIBLE = read_versions("2+")

    topics: Annotated[tuple[CreatePartitionsTopic, ...], wire("[]struct", "0+")]
    timeout_ms: Annotated[int, wire("int32", "0+")]
    validate_only: Annotated[bool, wire("bool", "0+")]


class CreatePartitionsTopicResult(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    name: Annotated[str, wire("string", "0+")]
    error_code: Annotated[int, wire("int16", "0+")]
    error_message: Annotated[str | None, wire("string", "0+", nullable="0+")] = None


class CreatePartitionsResponse(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-3")
    FLEXIBLE = read_versions("2+")

    throttle_time_ms: Annotated[int, wire("int32", "0+")]
    results: Annotated[tuple[CreatePartitionsTopicResult, ...], wire("[]struct", "0+")]
