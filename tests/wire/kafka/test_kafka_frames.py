"""Headers: which version of them a request and its response have."""

from __future__ import annotations

import random
from typing import Any

import pytest
from kafka_samples import sample

from rebalance_lab.wire.kafka.apis import APIS, ApiKey
from rebalance_lab.wire.kafka.codec import codec
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.errors import MalformedMessage, UnsupportedVersion
from rebalance_lab.wire.kafka.frames import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    read_header,
)
from rebalance_lab.wire.kafka.messages.api_versions import ApiVersionsResponse
from rebalance_lab.wire.kafka.messages.controlled_shutdown import ControlledShutdownRequest
from rebalance_lab.wire.kafka.messages.metadata import MetadataRequest

ALL = [(key, version) for key, api in APIS.items() for version in range(api.versions.last + 1)]


@pytest.mark.parametrize(("key", "version"), ALL, ids=[f"{APIS[key].name}-{version}" for key, version in ALL])
def test_requests_and_responses_come_back(key: ApiKey, version: int) -> None:
    chance = random.Random(f"{key} {version}")
    request: Any = sample(APIS[key].request, version, chance)
    frame = encode_request(request, version, correlation_id=7, client_id="me")
    header = read_header(frame)
    assert (header.key, header.version, header.correlation_id) == (key, version, 7)
    bare = key is ApiKey.CONTROLLED_SHUTDOWN and version == 0
    assert header.client_id == ("" if bare else "me")
    assert decode_request(frame, header) == request
    response: Any = sample(APIS[key].response, version, chance)
    assert decode_response(encode_response(response, version, correlation_id=7), key, version) == (7, response)


def test_the_header_has_tagged_fields_where_the_request_is_flexible() -> None:
    frame = encode_request(MetadataRequest(topics=None), 9, correlation_id=1, client_id=None)
    assert frame[:11].hex() == "0003000900000001ffff00"
    frame = encode_request(MetadataRequest(topics=None), 8, correlation_id=1, client_id="é")
    assert frame[:12].hex() == "00030008000000010002c3a9"


def test_controlled_shutdown_0_has_no_client_id() -> None:
    frame = encode_request(ControlledShutdownRequest(broker_id=5), 0, correlation_id=1, client_id="dropped")
    assert frame.hex() == "000700000000000100000005"
    assert read_header(frame).end == 8


def test_api_versions_always_answers_with_the_oldest_header() -> None:
    response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=())
    assert encode_response(response, 4, correlation_id=1)[:6].hex() == "000000010023"
    assert encode_response(response, 0, correlation_id=1).hex() == "00000001002300000000"


def test_a_header_is_read_in_versions_that_do_not_exist() -> None:
    header = read_header(bytes.fromhex("0012006300000009000161001234"))
    assert (header.key, header.version, header.client_id) == (ApiKey.API_VERSIONS, 99, "a")
    with pytest.raises(UnsupportedVersion, match="ApiVersionsRequest has versions 0 to 4, not 99"):
        decode_request(b"", header)


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        ("", "field request_api_key, at byte 0: the bytes end here"),
        ("0003", "field request_api_version, at byte 2: the bytes end here"),
        ("00030001", "field correlation_id, at byte 4: the bytes end here"),
        ("0003000100000001", "field client_id, at byte 8: the bytes end here"),
        ("000300010000000100056162", "field client_id, at byte 10: 5 bytes announced, 2 left"),
        ("03e7000000000001", "field request_api_key, at byte 0: 999 is no API that is known here"),
        ("000300090000000100016101", "field tagged fields"),
    ],
)
def test_what_is_wrong_with_a_header_is_named(frame: str, said: str) -> None:
    with pytest.raises(MalformedMessage, match=f"^RequestHeader version [012], {said}"):
        read_header(bytes.fromhex(frame))


def test_error_codes_are_kafkas() -> None:
    assert ErrorCode(35) is ErrorCode.UNSUPPORTED_VERSION
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER.retriable
    assert ErrorCode.CORRUPT_MESSAGE != 0
    assert ErrorCode.NONE == 0
    assert not ErrorCode.NONE.retriable
    assert len({*ErrorCode}) == len(ErrorCode) > 120
    assert codec(MetadataRequest, 0).encode(MetadataRequest(topics=())) == bytes(4)
