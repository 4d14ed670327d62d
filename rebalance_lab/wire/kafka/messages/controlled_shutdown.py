"""ControlledShutdown, API 7.

Written by `make messages` from the message definitions of Kafka 3.9.1. Do not edit.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from rebalance_lab.wire.kafka.schema import Message, read_versions, wire


class ControlledShutdownRequest(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-3")
    FLEXIBLE = read_versions("3+")

    broker_id: Annotated[int, wire("int32", "0+")]
    broker_epoch: Annotated[int, wire("int64", "2+", ignorable=True)] = -1


class RemainingPartition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    topic_name: Annotated[str, wire("string", "0+")]
    partition_index: Annotated[int, wire("int32", "0+")]


class ControlledShutdownResponse(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-3")
    FLEXIBLE = read_versions("3+")

    error_code: Annotated[int, wire("int16", "0+")]
    remaining_partitions: Annotated[tuple[RemainingPartition, ...], wire("[]struct", "0+")]
