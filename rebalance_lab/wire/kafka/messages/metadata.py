"""Metadata, API 3.

Written by `make messages` from the message definitions of Kafka 3.9.1. Do not edit.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from rebalance_lab.wire.kafka.schema import ZERO_UUID, Message, read_versions, wire


class MetadataRequestTopic(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    topic_id: Annotated[bytes, wire("uuid", "10+", ignorable=True)] = ZERO_UUID
    name: Annotated[str | None, wire("string", "0+", nullable="10+")]


class MetadataRequest(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-12")
    FLEXIBLE = read_versions("9+")

    topics: Annotated[tuple[MetadataRequestTopic, ...] | None, wire("[]struct", "0+", nullable="1+")]
    allow_auto_topic_creation: Annotated[bool, wire("bool", "4+")] = True
    include_cluster_authorized_operations: Annotated[bool, wire("bool", "8-10")] = False
    include_topic_authorized_operations: Annotated[bool, wire("bool", "8+")] = False


class MetadataResponseBroker(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    node_id: Annotated[int, wire("int32", "0+")]
    host: Annotated[str, wire("string", "0+")]
    port: Annotated[int, wire("int32", "0+")]
    rack: Annotated[str | None, wire("string", "1+", nullable="1+", ignorable=True)] = None


class MetadataResponsePartition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    error_code: Annotated[int, wire("int16", "0+")]
    partition_index: Annotated[int, wire("int32", "0+")]
    leader_id: Annotated[int, wire("int32", "0+")]
    leader_epoch: Annotated[int, wire("int32", "7+", ignorable=True)] = -1
    replica_nodes: Annotated[tuple[int, ...], wire("[]int32", "0+")]
    isr_nodes: Annotated[tuple[int, ...], wire("[]int32", "0+")]
    offline_replicas: Annotated[tuple[int, ...], wire("[]int32", "5+", ignorable=True)] = ()


class MetadataResponseTopic(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    error_code: Annotated[int, wire("int16", "0+")]
    name: Annotated[str | None, wire("string", "0+", nullable="12+")]
    topic_id: Annotated[bytes, wire("uuid", "10+", ignorable=True)] = ZERO_UUID
    is_internal: Annotated[bool, wire("bool", "1+", ignorable=True)] = False
    partitions: Annotated[tuple[MetadataResponsePartition, ...], wire("[]struct", "0+")]
    topic_authorized_operations: Annotated[int, wire("int32", "8+")] = -2147483648


class MetadataResponse(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-12")
    FLEXIBLE = read_versions("9+")

    throttle_time_ms: Annotated[int, wire("int32", "3+", ignorable=True)] = 0
    brokers: Annotated[tuple[MetadataResponseBroker, ...], wire("[]struct", "0+")]
    cluster_id: Annotated[str | None, wire("string", "2+", nullable="2+", ignorable=True)] = None
    controller_id: Annotated[int, wire("int32", "1+", ignorable=True)] = -1
    topics: Annotated[tuple[MetadataResponseTopic, ...], wire("[]struct", "0+")]
    cluster_authorized_operations: Annotated[int, wire("int32", "8-10")] = -2147483648
