"""DeleteTopics, API 20.

Written by `make messages` from the message definitions of Kafka 3.9.1. Do not edit.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from rebalance_lab.wire.kafka.schema import ZERO_UUID, Message, read_versions, wire


class DeleteTopicState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    name: Annotated[str | None, wire("string", "6+", nullable="6+")] = None
    topic_id: Annotated[bytes, wire("uuid", "6+")]


class DeleteTopicsRequest(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-6")
    FLEXIBLE = read_versions("4+")

    topics: Annotated[tuple[DeleteTopicState, ...], wire("[]struct", "6+")] = ()
    topic_names: Annotated[tuple[str, ...], wire("[]string", "0-5", ignorable=True)] = ()
    timeout_ms: Annotated[int, wire("int32", "0+")]


class DeletableTopicResult(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    name: Annotated[str | None, wire("string", "0+", nullable="6+")]
    topic_id: Annotated[bytes, wire("uuid", "6+", ignorable=True)] = ZERO_UUID
    error_code: Annotated[int, wire("int16", "0+")]
    error_message: Annotated[str | None, wire("string", "5+", nullable="5+", ignorable=True)] = None


class DeleteTopicsResponse(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-6")
    FLEXIBLE = read_versions("4+")

    throttle_time_ms: Annotated[int, wire("int32", "1+", ignorable=True)] = 0
    responses: Annotated[tuple[DeletableTopicResult, ...], wire("[]struct", "0+")]
