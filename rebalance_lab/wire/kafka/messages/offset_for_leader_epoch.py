"""OffsetForLeaderEpoch, API 23.

Written by `make messages` from the message definitions of Kafka 3.9.1. Do not edit.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from rebalance_lab.wire.kafka.schema import Message, read_versions, wire


class OffsetForLeaderPartition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    partition: Annotated[int, wire("int32", "0+")]
    current_leader_epoch: Annotated[int, wire("int32", "2+", ignorable=True)] = -1
    leader_epoch: Annotated[int, wire("int32", "0+")]


class OffsetForLeaderTopic(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    topic: Annotated[str, wire("string", "0+")]
    partitions: Annotated[tuple[OffsetForLeaderPartition, ...], wire("[]struct", "0+")]


class OffsetForLeaderEpochRequest(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-4")
    FLEXIBLE = read_versions("4+")

    replica_id: Annotated[int, wire("int32", "3+", ignorable=True)] = -2
    topics: Annotated[tuple[OffsetForLeaderTopic, ...], wire("[]struct", "0+")]


class EpochEndOffset(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    error_code: Annotated[int, wire("int16", "0+")]
    partition: Annotated[int, wire("int32", "0+")]
    leader_epoch: Annotated[int, wire("int32", "1+", ignorable=True)] = -1
    end_offset: Annotated[int, wire("int64", "0+")] = -1


class OffsetForLeaderTopicResult(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    topic: Annotated[str, wire("string", "0+")]
    partitions: Annotated[tuple[EpochEndOffset, ...], wire("[]struct", "0+")]


class OffsetForLeaderEpochResponse(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-4")
    FLEXIBLE = read_versions("4+")

    throttle_time_ms: Annotated[int, wire("int32", "2+", ignorable=True)] = 0
    topics: Annotated[tuple[OffsetForLeaderTopicResult, ...], wire("[]struct", "0+")]
