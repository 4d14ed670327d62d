"""DescribeCluster, API 60.

Written by `make messages` from the message definitions of Kafka 3.9.1. Do not edit.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from rebalance_lab.wire.kafka.schema import Message, read_versions, wire


class DescribeClusterRequest(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-1")
    FLEXIBLE = read_versions("0+")

    include_cluster_authorized_operations: Annotated[bool, wire("bool", "0+")]
    endpoint_type: Annotated[int, wire("int8", "1+")] = 1


class DescribeClusterBroker(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    broker_id: Annotated[int, wire("int32", "0+")]
    host: Annotated[str, wire("string", "0+")]
    port: Annotated[int, wire("int32", "0+")]
    rack: Annotated[str | None, wire("string", "0+", nullable="0+")] = None


class DescribeClusterResponse(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-1")
    FLEXIBLE = read_versions("0+")

    throttle_time_ms: Annotated[int, wire("int32", "0+")]
    error_code: Annotated[int, wire("int16", "0+")]
    error_message: Annotated[str | None, wire("string", "0+", nullable="0+")] = None
    endpoint_type: Annotated[int, wire("int8", "1+")] = 1
    cluster_id: Annotated[str, wire("string", "0+")]
    controller_id: Annotated[int, wire("int32", "0+")] = -1
    brokers: Annotated[tuple[DescribeClusterBroker, ...], wire("[]struct", "0+")]
    cluster_authorized_operations: Annotated[int, wire("int32", "0+")] = -2147483648
