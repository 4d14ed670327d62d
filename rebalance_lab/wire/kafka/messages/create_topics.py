"""CreateTopics, API 19.

Written by `make messages` from the message definitions of Kafka 3.9.1. Do not edit.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from rebalance_lab.wire.kafka.schema import ZERO_UUID, Message, read_versions, wire


class CreatableReplicaAssignment(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    partition_index: Annotated[int, wire("int32", "0+")]
    broker_ids: Annotated[tuple[int, ...], wire("[]int32", "0+")]


class CreatableTopicConfig(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    name: Annotated[str, wire("string", "0+")]
    value: Annotated[str | None, wire("string", "0+", nullable="0+")]


class CreatableTopic(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    name: Annotated[str, wire("string", "0+")]
    num_partitions: Annotated[int, wire("int32", "0+")]
    replication_factor: Annotated[int, wire("int16", "0+")]
    assignments: Annotated[tuple[CreatableReplicaAssignment, ...], wire("[]struct", "0+")]
    configs: Annotated[tuple[CreatableTopicConfig, ...], wire("[]struct", "0+")]


class CreateTopicsRequest(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-7")
    FLEXIBLE = read_versions("5+")

    topics: Annotated[tuple[CreatableTopic, ...], wire("[]struct", "0+")]
    timeout_ms: Annotated[int, wire("int32", "0+")] = 60000
    validate_only: Annotated[bool, wire("bool", "1+")] = False


class CreatableTopicConfigs(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    name: Annotated[str, wire("string", "5+")]
    value: Annotated[str | None, wire("string", "5+", nullable="5+")]
    read_only: Annotated[bool, wire("bool", "5+")]
    config_source: Annotated[int, wire("int8", "5+", ignorable=True)] = -1
    is_sensitive: Annotated[bool, wire("bool", "5+")]


class CreatableTopicResult(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    name: Annotated[str, wire("string", "0+")]
    topic_id: Annotated[bytes, wire("uuid", "7+", ignorable=True)] = ZERO_UUID
    error_code: Annotated[int, wire("int16", "0+")]
    error_message: Annotated[str | None, wire("string", "1+", nullable="0+", ignorable=True)] = ""
    topic_config_error_code: Annotated[int, wire("int16", "5+", tag=0, tagged="5+", ignorable=True)] = 0
    num_partitions: Annotated[int, wire("int32", "5+", ignorable=True)] = -1
    replication_factor: Annotated[int, wire("int16", "5+", ignorable=True)] = -1
    configs: Annotated[
        tuple[CreatableTopicConfigs, ...] | None, wire("[]struct", "5+", nullable="5+", ignorable=True)
    ] = ()


class CreateTopicsResponse(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-7")
    FLEXIBLE = read_versions("5+")

    throttle_time_ms: Annotated[int, wire("int32", "2+", ignorable=True)] = 0
    topics: Annotated[tuple[CreatableTopicResult, ...], wire("[]struct", "0+")]
