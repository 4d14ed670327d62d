"""Requests and responses as they travel: a header and a message, without the size that a connection puts first."""

from __future__ import annotations

from typing import NamedTuple

from rebalance_lab.wire.kafka.apis import APIS, ApiKey
from rebalance_lab.wire.kafka.codec import codec
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.errors import MalformedMessage
from rebalance_lab.wire.kafka.messages.api_versions import ApiVersionsResponse
from rebalance_lab.wire.kafka.messages.headers import RequestHeader, ResponseHeader
from rebalance_lab.wire.kafka.schema import Message

_KEYS = {message: key for key, api in APIS.items() for message in (api.request, api.response)}


def key_of(message: type[Message]) -> ApiKey:
    """The API of a request or a response."""
    return _KEYS[message]


class Header(NamedTuple):
    """The header of a request, and the offset of the message behind it."""

    key: ApiKey
    version: int
    correlation_id: int
    client_id: str | None
    end: int


def encode_request(
    request: Message, version: int, *, correlation_id: int, client_id: str | None, body: bytes | None = None
) -> bytes:
    """`body`: the request in this version without its header, if it has been encoded already. Raises UnsupportedVersion
    and UnwritableMessage."""
    key = key_of(type(request))
    header = RequestHeader(
        request_api_key=key, request_api_version=version, correlation_id=correlation_id, client_id=client_id
    )
    head = codec(RequestHeader, _request_header_version(key, version)).encode(header)
    return codec(type(request), version).encode(request, head) if body is None else head + body


def read_header(frame: bytes) -> Header:
    """The header of a request. Raises MalformedMessage, also for an API that is not in APIS.

    It can be read in versions of the API that do not exist: whoever asks for ApiVersions in one gets an answer.
    """
    number, version = int.from_bytes(frame[:2], "big", signed=True), int.from_bytes(frame[2:4], "big", signed=True)
    try:
        key = ApiKey(number)
    except ValueError:
        reason = f"{number} is no API that is known here"
        raise MalformedMessage("RequestHeader", 0, "request_api_key", 0, reason) from None
    header, end = codec(RequestHeader, _request_header_version(key, version)).read(frame)
    return Header(key, version, header.correlation_id, header.client_id, end)


def decode_request(frame: bytes, header: Header) -> Message:
    """The message behind a header that was read. Raises UnsupportedVersion and MalformedMessage.

    Bytes behind the message are ignored, as Kafka does: librdkafka 2.16 sends one too many in Metadata 9.
    """
    return codec(APIS[header.key].request, header.version).read(frame, header.end)[0]


#: With this begins an answer to ApiVersions that is in version 0, whatever was asked (`ApiVersionsResponse.parse`).
_UNSUPPORTED = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")


def encode_response(response: Message, version: int, *, correlation_id: int) -> bytes:
    """Raises UnsupportedVersion and UnwritableMessage."""
    if isinstance(response, ApiVersionsResponse) and response.error_code == ErrorCode.UNSUPPORTED_VERSION:
        version = 0
    header_version = _response_header_version(key_of(type(response)), version)
    head = codec(ResponseHeader, header_version).encode(ResponseHeader(correlation_id=correlation_id))
    return codec(type(response), version).encode(response, head)


def decode_response(frame: bytes, key: ApiKey, version: int) -> tuple[int, Message]:
    """(correlation id, message) of the response to a request. Raises UnsupportedVersion and MalformedMessage."""
    header, end = codec(ResponseHeader, _response_header_version(key, version)).read(frame)
    if key is ApiKey.API_VERSIONS and frame[end : end + 2] == _UNSUPPORTED:
        version = 0
    return header.correlation_id, codec(APIS[key].response, version).decode(frame, end)


def _request_header_version(key: ApiKey, version: int) -> int:
    if key is ApiKey.CONTROLLED_SHUTDOWN and version == 0:
        return 0  # without a client id
    return 2 if version in APIS[key].request.FLEXIBLE else 1


def _response_header_version(key: ApiKey, version: int) -> int:
    """A client asks for ApiVersions before it knows what the broker can, so that the answer is one it can read."""
    if key is ApiKey.API_VERSIONS:
        return 0
    return 1 if version in APIS[key].response.FLEXIBLE else 0
