"""Frames on a connection, as the port to a network hands them to the codec."""

from __future__ import annotations

import pytest

from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.calls import Call, KafkaCodec
from rebalance_lab.wire.kafka.codec import codec
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.errors import MalformedMessage, UnsupportedVersion
from rebalance_lab.wire.kafka.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from rebalance_lab.wire.kafka.messages.metadata import MetadataRequest, MetadataResponse

CODEC = KafkaCodec()
METADATA = Call.of(MetadataRequest(topics=None), 9, "c")
FRAME = CODEC.encode_request(3, METADATA)


def test_a_request_and_its_reply() -> None:
    assert CODEC.decode_request(FRAME) == (3, METADATA)
    reply = MetadataResponse(brokers=(), topics=())
    assert CODEC.decode_reply(METADATA, CODEC.encode_reply(3, METADATA, reply)) == (3, reply)


def test_bytes_behind_a_request_are_ignored_as_kafka_does() -> None:
    """librdkafka 2.16 sends one too many in Metadata 9."""
    assert CODEC.decode_request(FRAME + b"\0") == (3, METADATA)


@pytest.mark.parametrize("frame", [b"", FRAME[:3], FRAME[:-1], b"\x7f\xff" + FRAME[2:]])
def test_what_is_no_request(frame: bytes) -> None:
    with pytest.raises(MalformedMessage):
        CODEC.decode_request(frame)


def test_a_version_that_does_not_exist() -> None:
    with pytest.raises(UnsupportedVersion):
        CODEC.decode_request(FRAME[:2] + b"\x00\x63" + FRAME[4:])


def test_a_client_of_the_future_is_answered_in_version_0() -> None:
    frame = CODEC.encode_request(3, Call.of(ApiVersionsRequest(), 3, "c"))
    correlation_id, request = CODEC.decode_request(frame[:2] + b"\x00\x63" + frame[4:] + b"whatever that version has")
    assert (correlation_id, request) == (3, Call(ApiKey.API_VERSIONS, 99, "c", None))
    reply = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=())
    answered = CODEC.encode_reply(3, request, reply)
    assert codec(ApiVersionsResponse, 0).decode(answered[4:]) == reply
