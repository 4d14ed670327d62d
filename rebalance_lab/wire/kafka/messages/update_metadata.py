"""UpdateMetadata, API 6.

Written by `make messages` from the message definitions of Kafka 3.9.1. Do not edit.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from rebalance_lab.wire.kafka.schema import ZERO_UUID, Message, read_versions, wire


class UpdateMetadataPartitionState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    topic_name: Annotated[str, wire("string", "0-4", ignorable=True)] = ""
    partition_index: Annotated[int, wire("int32", "0+")]
    controller_epoch: Annotated[int, wire("int32", "0+")]
    leader: Annotated[int, wire("int32", "0+")]
    leader_epoch: Annotated[int, wire("int32", "0+")]
    isr: Annotated[tuple[int, ...], wire("[]int32", "0+")]
    zk_version: Annotated[int, wire("int32", "0+")]
    replicas: Annotated[tuple[int, ...], wire("[]int32", "0+")]
    offline_replicas: Annotated[tuple[int, ...], wire("[]int32", "4+", ignorable=True)] = ()


class UpdateMetadataTopicState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    topic_name: Annotated[str, wire("string", "5+")]
    topic_id: Annotated[bytes, wire("uuid", "7+", ignorable=True)] = ZERO_UUID
    partition_states: Annotated[tuple[UpdateMetadataPartitionState, ...], wire("[]struct", "5+")]


class UpdateMetadataEndpoint(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    port: Annotated[int, wire("int32", "1+")]
    host: Annotated[str, wire("string", "1+")]
    listener: Annotated[str, wire("string", "3+", ignorable=True)] = ""
    security_protocol: Annotated[int, wire("int16", "1+")]


class UpdateMetadataBroker(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    id: Annotated[int, wire("int32", "0+")]
    v0_host: Annotated[str, wire("string", "0", ignorable=True)] = ""
    v0_port: Annotated[int, wire("int32", "0", ignorable=True)] = 0
    endpoints: Annotated[tuple[UpdateMetadataEndpoint, ...], wire("[]struct", "1+", ignorable=True)] = ()
    rack: Annotated[str | None, wire("string", "2+", nullable="0+", ignorable=True)] = ""


class UpdateMetadataRequest(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-8")
    FLEXIBLE = read_versions("6+")

    controller_id: Annotated[int, wire("int32", "0+")]
    is_kraft_controller: Annotated[bool, wire("bool", "8+")] = False
    type: Annotated[int, wire("int8", "8+", tag=0, tagged="8+")] = 0
    controller_epoch: Annotated[int, wire("int32", "0+")]
    broker_epoch: Annotated[int, wire("int64", "5+", ignorable=True)] = -1
    ungrouped_partition_states: Annotated[tuple[UpdateMetadataPartitionState, ...], wire("[]struct", "0-4")] = ()
    topic_states: Annotated[tuple[UpdateMetadataTopicState, ...], wire("[]struct", "5+")] = ()
    live_brokers: Annotated[tuple[UpdateMetadataBroker, ...], wire("[]struct", "0+")]


class UpdateMetadataResponse(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-8")
    FLEXIBLE = read_versions("6+")

    error_code: Annotated[int, wire("int16", "0+")]
