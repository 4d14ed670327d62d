"""LeaderAndIsr, API 4.

Written by `make messages` from the message definitions of Kafka 3.9.1. Do not edit.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from rebalance_lab.wire.kafka.schema import ZERO_UUID, Message, read_versions, wire


class LeaderAndIsrPartitionState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    topic_name: Annotated[str, wire("string", "0-1", ignorable=True)] = ""
    partition_index: Annotated[int, wire("int32", "0+")]
    controller_epoch: Annotated[int, wire("int32", "0+")]
    leader: Annotated[int, wire("int32", "0+")]
    leader_epoch: Annotated[int, wire("int32", "0+")]
    isr: Annotated[tuple[int, ...], wire("[]int32", "0+")]
    partition_epoch: Annotated[int, wire("int32", "0+")]
    replicas: Annotated[tuple[int, ...], wire("[]int32", "0+")]
    adding_replicas: Annotated[tuple[int, ...], wire("[]int32", "3+", ignorable=True)] = ()
    removing_replicas: Annotated[tuple[int, ...], wire("[]int32", "3+", ignorable=True)] = ()
    is_new: Annotated[bool, wire("bool", "1+", ignorable=True)] = False
    leader_recovery_state: Annotated[int, wire("int8", "6+")] = 0


class LeaderAndIsrTopicState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    topic_name: Annotated[str, wire("string", "2+")]
    topic_id: Annotated[bytes, wire("uuid", "5+", ignorable=True)] = ZERO_UUID
    partition_states: Annotated[tuple[LeaderAndIsrPartitionState, ...], wire("[]struct", "2+")]


class LeaderAndIsrLiveLeader(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    broker_id: Annotated[int, wire("int32", "0+")]
    host_name: Annotated[str, wire("string", "0+")]
    port: Annotated[int, wire("int32", "0+")]


class LeaderAndIsrRequest(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-7")
    FLEXIBLE = read_versions("4+")

    controller_id: Annotated[int, wire("int32", "0+")]
    is_kraft_controller: Annotated[bool, wire("bool", "7+")] = False
    controller_epoch: Annotated[int, wire("int32", "0+")]
    broker_epoch: Annotated[int, wire("int64", "2+", ignorable=True)] = -1
    type: Annotated[int, wire("int8", "5+")] = 0
    ungrouped_partition_states: Annotated[tuple[LeaderAndIsrPartitionState, ...], wire("[]struct", "0-1")] = ()
    topic_states: Annotated[tuple[LeaderAndIsrTopicState, ...], wire("[]struct", "2+")] = ()
    live_leaders: Annotated[tuple[LeaderAndIsrLiveLeader, ...], wire("[]struct", "0+")]


class LeaderAndIsrPartitionError(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    topic_name: Annotated[str, wire("string", "0-4", ignorable=True)] = ""
    partition_index: Annotated[int, wire("int32", "0+")]
    error_code: Annotated[int, wire("int16", "0+")]


class LeaderAndIsrTopicError(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    topic_id: Annotated[bytes, wire("uuid", "5+")]
    partition_errors: Annotated[tuple[LeaderAndIsrPartitionError, ...], wire("[]struct", "5+")]


class LeaderAndIsrResponse(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-7")
    FLEXIBLE = read_versions("4+")

    error_code: Annotated[int, wire("int16", "0+")]
    partition_errors: Annotated[tuple[LeaderAndIsrPartitionError, ...], wire("[]struct", "0-4")] = ()
    topics: Annotated[tuple[LeaderAndIsrTopicError, ...], wire("[]struct", "5+")] = ()
