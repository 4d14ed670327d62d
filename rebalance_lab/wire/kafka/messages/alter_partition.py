"""AlterPartition, API 56.

Written by `make messages` from the message definitions of Kafka 3.9.1. Do not edit.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from rebalance_lab.wire.kafka.schema import ZERO_UUID, Message, read_versions, wire


class BrokerState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    broker_id: Annotated[int, wire("int32", "3+")]
    broker_epoch: Annotated[int, wire("int64", "3+")] = -1


class AlterPartitionRequestPartitionData(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    partition_index: Annotated[int, wire("int32", "0+")]
    leader_epoch: Annotated[int, wire("int32", "0+")]
    new_isr: Annotated[tuple[int, ...], wire("[]int32", "0-2")] = ()
    new_isr_with_epochs: Annotated[tuple[BrokerState, ...], wire("[]struct", "3+")] = ()
    leader_recovery_state: Annotated[int, wire("int8", "1+")] = 0
    partition_epoch: Annotated[int, wire("int32", "0+")]


class AlterPartitionRequestTopicData(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    topic_name: Annotated[str, wire("string", "0-1", ignorable=True)] = ""
    topic_id: Annotated[bytes, wire("uuid", "2+", ignorable=True)] = ZERO_UUID
    partitions: Annotated[tuple[AlterPartitionRequestPartitionData, ...], wire("[]struct", "0+")]


class AlterPartitionRequest(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-3")
    FLEXIBLE = read_versions("0+")

    broker_id: Annotated[int, wire("int32", "0+")]
    broker_epoch: Annotated[int, wire("int64", "0+")] = -1
    topics: Annotated[tuple[AlterPartitionRequestTopicData, ...], wire("[]struct", "0+")]


class AlterPartitionResponsePartitionData(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    partition_index: Annotated[int, wire("int32", "0+")]
    error_code: Annotated[int, wire("int16", "0+")]
    leader_id: Annotated[int, wire("int32", "0+")]
    leader_epoch: Annotated[int, wire("int32", "0+")]
    isr: Annotated[tuple[int, ...], wire("[]int32", "0+")]
    leader_recovery_state: Annotated[int, wire("int8", "1+", ignorable=True)] = 0
    partition_epoch: Annotated[int, wire("int32", "0+")]


class AlterPartitionResponseTopicData(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    topic_name: Annotated[str, wire("string", "0-1", ignorable=True)] = ""
    topic_id: Annotated[bytes, wire("uuid", "2+", ignorable=True)] = ZERO_UUID
    partitions: Annotated[tuple[AlterPartitionResponsePartitionData, ...], wire("[]struct", "0+")]


class AlterPartitionResponse(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-3")
    FLEXIBLE = read_versions("0+")

    throttle_time_ms: Annotated[int, wire("int32", "0+")]
    error_code: Annotated[int, wire("int16", "0+")]
    topics: Annotated[tuple[AlterPartitionResponseTopicData, ...], wire("[]struct", "0+")]
