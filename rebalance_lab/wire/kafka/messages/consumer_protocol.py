"""ConsumerProtocolSubscription, ConsumerProtocolAssignment.

Written by `make messages` from the message definitions of Kafka 3.9.1. Do not edit.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from rebalance_lab.wire.kafka.schema import Message, read_versions, wire


class ConsumerProtocolSubscriptionTopicPartition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    topic: Annotated[str, wire("string", "1+")]
    partitions: Annotated[tuple[int, ...], wire("[]int32", "1+")]


class ConsumerProtocolSubscription(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-3")
    FLEXIBLE = read_versions("none")

    topics: Annotated[tuple[str, ...], wire("[]string", "0+")]
    user_data: Annotated[bytes | None, wire("bytes", "0+", nullable="0+")] = None
    owned_partitions: Annotated[
        tuple[ConsumerProtocolSubscriptionTopicPartition, ...], wire("[]struct", "1+", ignorable=True)
    ] = ()
    generation_id: Annotated[int, wire("int32", "2+", ignorable=True)] = -1
    rack_id: Annotated[str | None, wire("string", "3+", nullable="3+", ignorable=True)] = None


class ConsumerProtocolAssignmentTopicPartition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    topic: Annotated[str, wire("string", "0+")]
    partitions: Annotated[tuple[int, ...], wire("[]int32", "0+")]


class ConsumerProtocolAssignment(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-3")
    FLEXIBLE = read_versions("none")

    assigned_partitions: Annotated[tuple[ConsumerProtocolAssignmentTopicPartition, ...], wire("[]struct", "0+")]
    user_data: Annotated[bytes | None, wire("bytes", "0+", nullable="0+")] = None
