"""InitProducerId, API 22.

Written by `make messages` from the message definitions of Kafka 3.9.1. Do not edit.
"""

from __future__ import annotations

from typing import Annotated

from rebalance_lab.wire.kafka.schema import Message, read_versions, wire


class InitProducerIdRequest(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-5")
    FLEXIBLE = read_versions("2+")

    transactional_id: Annotated[str | None, wire("string", "0+", nullable="0+")]
    transaction_timeout_ms: Annotated[int, wire("int32", "0+")]
    producer_id: Annotated[int, wire("int64", "3+")] = -1
    producer_epoch: Annotated[int, wire("int16", "3+")] = -1


class InitProducerIdResponse(Message, frozen=True, kw_only=True, gc=False):
    VERSIONS = read_versions("0-5")
    FLEXIBLE = read_versions("2+")

    throttle_time_ms: Annotated[int, wire("int32", "0+", ignorable=True)]
    error_code: Annotated[int, wire("int16", "0+")]
    producer_id: Annotated[int, wire("int64", "0+")] = -1
    producer_epoch: Annotated[int, wire("int16", "0+")]
