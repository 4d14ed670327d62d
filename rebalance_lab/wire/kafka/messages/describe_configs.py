"""DescribeConfigs, API 32.

Written by `make messages` from the message definitions of Kafka 3.9.1. Do not edit.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from rebalance_lab.wire.kafka.schema import Message, read_versions, wire


class DescribeConfigsResource(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    resource_type: Annotated[int, wire("int8", "0+")]
    resource_name: Annotated[str, wire("string", "0+")]
    configuration_keys: Annotated[tuple[str, ...] | None, wire("[]string", "0+", nullable="0+")]


class DescribeConfigsRequest(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-4")
    FLEXIBLE = read_versions("4+")

    resources: Annotated[tuple[DescribeConfigsResource, ...], wire("[]struct", "0+")]
    include_synonyms: Annotated[bool, wire("bool", "1+")] = False
    include_documentation: Annotated[bool, wire("bool", "3+")] = False


class DescribeConfigsSynonym(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    name: Annotated[str, wire("string", "1+")]
    value: Annotated[str | None, wire("string", "1+", nullable="0+")]
    source: Annotated[int, wire("int8", "1+")]


class DescribeConfigsResourceResult(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    name: Annotated[str, wire("string", "0+")]
    value: Annotated[str | None, wire("string", "0+", nullable="0+")]
    read_only: Annotated[bool, wire("bool", "0+")]
    is_default: Annotated[bool, wire("bool", "0")] = False
    config_source: Annotated[int, wire("int8", "1+", ignorable=True)] = -1
    is_sensitive: Annotated[bool, wire("bool", "0+")]
    synonyms: Annotated[tuple[DescribeConfigsSynonym, ...], wire("[]struct", "1+", ignorable=True)] = ()
    config_type: Annotated[int, wire("int8", "3+", ignorable=True)] = 0
    documentation: Annotated[str | None, wire("string", "3+", nullable="0+", ignorable=True)] = ""


class DescribeConfigsResult(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    error_code: Annotated[int, wire("int16", "0+")]
    error_message: Annotated[str | None, wire("string", "0+", nullable="0+")]
    resource_type: Annotated[int, wire("int8", "0+")]
    resource_name: Annotated[str, wire("string", "0+")]
    configs: Annotated[tuple[DescribeConfigsResourceResult, ...], wire("[]struct", "0+")]


class DescribeConfigsResponse(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-4")
    FLEXIBLE = read_versions("4+")

    throttle_time_ms: Annotated[int, wire("int32", "0+")]
    results: Annotated[tuple[DescribeConfigsResult, ...], wire("[]struct", "0+")]
