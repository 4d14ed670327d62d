"""ApiVersions, API 18.

Written by `make messages` from the message definitions of Kafka 3.9.1. Do not edit.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from rebalance_lab.wire.kafka.schema import Message, read_versions, wire


class ApiVersionsRequest(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-4")
    FLEXIBLE = read_versions("3+")

    client_software_name: Annotated[str, wire("string", "3+", ignorable=True)] = ""
    client_software_version: Annotated[str, wire("string", "3+", ignorable=True)] = ""


class ApiVersion(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    api_key: Annotated[int, wire("int16", "0+")]
    min_version: Annotated[int, wire("int16", "0+")]
    max_version: Annotated[int, wire("int16", "0+")]


class SupportedFeatureKey(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    name: Annotated[str, wire("string", "3+")]
    min_version: Annotated[int, wire("int16", "3+")]
    max_version: Annotated[int, wire("int16", "3+")]


class FinalizedFeatureKey(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    name: Annotated[str, wire("string", "3+")]
    max_version_level: Annotated[int, wire("int16", "3+")]
    min_version_level: Annotated[int, wire("int16", "3+")]


class ApiVersionsResponse(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-4")
    FLEXIBLE = read_versions("3+")

    error_code: Annotated[int, wire("int16", "0+")]
    api_keys: Annotated[tuple[ApiVersion, ...], wire("[]struct", "0+")]
    throttle_time_ms: Annotated[int, wire("int32", "1+", ignorable=True)] = 0
    supported_features: Annotated[
        tuple[SupportedFeatureKey, ...], wire("[]struct", "3+", tag=0, tagged="3+", ignorable=True)
    ] = ()
    finalized_features_epoch: Annotated[int, wire("int64", "3+", tag=1, tagged="3+", ignorable=True)] = -1
    finalized_features: Annotated[
        tuple[FinalizedFeatureKey, ...], wire("[]struct", "3+", tag=2, tagged="3+", ignorable=True)
    ] = ()
    zk_migration_ready: Annotated[bool, wire("bool", "3+", tag=3, tagged="3+", ignorable=True)] = False
