"""IncrementalAlterConfigs, API 44.

Written by `make messages` from the message definitions of Kafka 3.9.1. Do not edit.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from rebalance_lab.wire.kafka.schema import Message, read_versions, wire


class AlterableConfig(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    name: Annotated[str, wire("string", "0+")]
    config_operation: Annotated[int, wire("int8", "0+")]
    value: Annotated[str | None, wire("string", "0+", nullable="0+")]


class AlterConfigsResource(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    resource_type: Annotated[int, wire("int8", "0+")]
    resource_name: Annotated[str, wire("string", "0+")]
    configs: Annotated[tuple[AlterableConfig, ...], wire("[]struct", "0+")]


class IncrementalAlterConfigsRequest(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-1")
    FLEXIBLE = read_versions("1+")

    resources: Annotated[tuple[AlterConfigsResource, ...], wire("[]struct", "0+")]
    validate_only: Annotated[bool, wire("bool", "0+")]


class AlterConfigsResourceResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    error_code: Annotated[int, wire("int16", "0+")]
    error_message: Annotated[str | None, wire("string", "0+", nullable="0+")]
    resource_type: Annotated[int, wire("int8", "0+")]
    resource_name: Annotated[str, wire("string", "0+")]


class IncrementalAlterConfigsResponse(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-1")
    FLEXIBLE = read_versions("1+")

    throttle_time_ms: Annotated[int, wire("int32", "0+")]
    responses: Annotated[tuple[AlterConfigsResourceResponse, ...], wire("[]struct", "0+")]
