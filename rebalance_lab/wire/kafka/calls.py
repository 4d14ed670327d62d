"""Requests and their replies on a connection: the codec that nodes hand to a network (`world.network.Codec`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rebalance_lab.wire.kafka.apis import APIS, ApiKey
from rebalance_lab.wire.kafka.errors import MalformedMessage, UnsupportedVersion
from rebalance_lab.wire.kafka.frames import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    key_of,
    read_header,
)
from rebalance_lab.wire.kafka.schema import Message


@dataclass(frozen=True, slots=True)
class Call:
    """A request and what its header says. `message`: None where a client asks for ApiVersions in a version that does
    not exist; it gets an answer in version 0, which tells it what there is (Kafka's RequestContext.parseRequest).
    `body`: encodes the message, where whoever asks can do it cheaper."""

    key: ApiKey
    version: int
    client_id: str | None
    message: Message | None
    body: Callable[[], bytes] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, message: Message, version: int, client_id: str | None, body: Callable[[], bytes] | None = None) -> Call:
        """The call that carries a message."""
        return cls(key_of(type(message)), version, client_id, message, body)

    @property
    def request(self) -> Any:
        """The message of a version that exists."""
        assert self.message is not None, "there is no such version, and no message"
        return self.message


class KafkaCodec:
    """Kafka's protocol. A request that cannot be read, of an unknown API or in an unknown version, ends its connection,
    as in Kafka (SocketServer.Processor.processCompletedReceives)."""

    malformed: tuple[type[Exception], ...] = (MalformedMessage, UnsupportedVersion)

    def encode_request(self, correlation_id: int, request: Call) -> bytes:
        """Raises UnwritableMessage and UnsupportedVersion."""
        assert request.message is not None, "nobody here asks in a version that does not exist"
        return encode_request(
            request.message,
            request.version,
            correlation_id=correlation_id,
            client_id=request.client_id,
            body=None if request.body is None else request.body(),
        )

    def decode_request(self, frame: bytes) -> tuple[int, Call]:
        header = read_header(frame)
        asks_in_vain = header.key is ApiKey.API_VERSIONS and header.version not in APIS[header.key].request.VERSIONS
        message = None if asks_in_vain else decode_request(frame, header)
        return header.correlation_id, Call(header.key, header.version, header.client_id, message)

    def encode_reply(self, correlation_id: int, request: Call, reply: Message) -> bytes:
        """Raises UnwritableMessage."""
        return encode_response(reply, request.version, correlation_id=correlation_id)

    def decode_reply(self, request: Call, frame: bytes) -> tuple[int, Message]:
        return decode_response(frame, request.key, request.version)
