"""FindCoordinator, API 10.

Written by `make messages` from the message definitions of Kafka 3.9.1. Do not edit.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from rebalance_lab.wire.kafka.schema import Message, read_versions, wire


class FindCoordinatorRequest(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-6")
    FLEXIBLE = read_versions("3+")

    key: Annotated[str, wire("string", "0-3")] = ""
    key_type: Annotated[int, wire("int8", "1+")] = 0
    coordinator_keys: Annotated[tuple[str, ...], wire("[]string", "4+")] = ()


class Coordinator(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    key: Annotated[str, wire("string", "4+")]
    node_id: Annotated[int, wire("int32", "4+")]
    host: Annotated[str, wire("string", "4+")]
    port: Annotated[int, wire("int32", "4+")]
    error_code: Annotated[int, wire("int16", "4+")]
    error_message: Annotated[str | None, wire("string", "4+", nullable="4+", ignorable=True)]


class FindCoordinatorResponse(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-6")
    FLEXIBLE = read_versions("3+")

    throttle_time_ms: Annotated[int, wire("int32", "1+", ignorable=True)] = 0
    error_code: Annotated[int, wire("int16", "0-3")] = 0
    error_message: Annotated[str | None, wire("string", "1-3", nullable="1-3", ignorable=True)] = ""
    node_id: Annotated[int, wire("int32", "0-3")] = 0
    host: Annotated[str, wire("string", "0-3")] = ""
    port: Annotated[int, wire("int32", "0-3")] = 0
    coordinators: Annotated[tuple[Coordinator, ...], wire("[]struct", "4+")] = ()
