"""OffsetCommitKey, OffsetCommitValue, GroupMetadataKey, GroupMetadataValue.

Written by `make messages` from the message definitions of Kafka 3.9.1. Do not edit.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from rebalance_lab.wire.kafka.schema import Message, read_versions, wire


class OffsetCommitKey(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-1")
    FLEXIBLE = read_versions("none")

    group: Annotated[str, wire("string", "0-1")]
    topic: Annotated[str, wire("string", "0-1")]
    partition: Annotated[int, wire("int32", "0-1")]


class OffsetCommitValue(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-4")
    FLEXIBLE = read_versions("4+")

    offset: Annotated[int, wire("int64", "0+")]
    leader_epoch: Annotated[int, wire("int32", "3+", ignorable=True)] = -1
    metadata: Annotated[str, wire("string", "0+")]
    commit_timestamp_ms: Annotated[int, wire("int64", "0+")]
    expire_timestamp_ms: Annotated[int, wire("int64", "1", ignorable=True)] = -1


class GroupMetadataKey(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("2")
    FLEXIBLE = read_versions("none")

    group: Annotated[str, wire("string", "2")]


class MemberMetadata(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    member_id: Annotated[str, wire("string", "0+")]
    group_instance_id: Annotated[str | None, wire("string", "3+", nullable="3+", ignorable=True)] = None
    client_id: Annotated[str, wire("string", "0+")]
    client_host: Annotated[str, wire("string", "0+")]
    rebalance_timeout_ms: Annotated[int, wire("int32", "1+", ignorable=True)] = -1
    session_timeout_ms: Annotated[int, wire("int32", "0+")]
    subscription: Annotated[bytes, wire("bytes", "0+")]
    assignment: Annotated[bytes, wire("bytes", "0+")]


class GroupMetadataValue(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-4")
    FLEXIBLE = read_versions("4+")

    protocol_type: Annotated[str, wire("string", "0+")]
    generation: Annotated[int, wire("int32", "0+")]
    protocol: Annotated[str | None, wire("string", "0+", nullable="0+")]
    leader: Annotated[str | None, wire("string", "0+", nullable="0+")]
    current_state_timestamp_ms: Annotated[int, wire("int64", "2+", ignorable=True)] = -1
    members: Annotated[tuple[MemberMetadata, ...], wire("[]struct", "0+")]
