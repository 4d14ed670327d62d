"""RequestHeader, ResponseHeader.

Written by `make messages` from the message definitions of Kafka 3.9.1. Do not edit.
"""

from __future__ import annotations

from typing import Annotated

from rebalance_lab.wire.kafka.schema import Message, read_versions, wire


class RequestHeader(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-2")
    FLEXIBLE = read_versions("2+")

    request_api_key: Annotated[int, wire("int16", "0+")]
    request_api_version: Annotated[int, wire("int16", "0+")]
    correlation_id: Annotated[int, wire("int32", "0+")]
    client_id: Annotated[str | None, wire("string", "1+", nullable="1+", flexible="none", ignorable=True)] = ""


class ResponseHeader(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-1")
    FLEXIBLE = read_versions("1+")

    correlation_id: Annotated[int, wire("int32", "0+")]
