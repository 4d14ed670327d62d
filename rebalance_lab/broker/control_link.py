"""Connections between a controller and brokers, one to each, made when it is needed (`RequestSendThread`,
`NodeToControllerChannelManager`, Kafka 3.9.1)."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial

from controller.channels import Undelivered
from controller.cluster import LiveBroker
from controller.request_batch import ControlRequest
from rebalance_lab.broker.versions import ProtocolVersion, merged
from rebalance_lab.wire.kafka.calls import Call, KafkaCodec
from rebalance_lab.wire.kafka.codec import codec
from rebalance_lab.wire.kafka.frames import key_of
from rebalance_lab.wire.kafka.messages.alter_partition import AlterPartitionRequest
from rebalance_lab.wire.kafka.messages.controlled_shutdown import ControlledShutdownRequest
from rebalance_lab.wire.kafka.messages.leader_and_isr import LeaderAndIsrRequest
from rebalance_lab.wire.kafka.messages.update_metadata import UpdateMetadataRequest
from rebalance_lab.wire.kafka.schema import Message
from rebalance_lab.world.network import Address, Connection, Network, NetworkError

#: Whose requests of several brokers may share one encoding: each says which life of a broker it is for.
SHARED = ProtocolVersion.V2_7

#: Where a LeaderAndIsr or UpdateMetadata request has the epoch of its broker: behind the controller's id and epoch.
_BROKER_EPOCH_AT = 8
_broker_epoch = struct.Struct(">q")


class SharedBodies:
    """Encodes a controller's LeaderAndIsr and UpdateMetadata requests. Those that differ only in the epoch of the
    broker that they are for are encoded once. It keeps the last request of each kind and its bytes."""

    def __init__(self) -> None:
        self._last: dict[type[Message], tuple[Message, bytes]] = {}

    def encoded(self, request: LeaderAndIsrRequest | UpdateMetadataRequest) -> bytes:
        """The request's bytes without a header. Raises UnwritableMessage."""
        last, body = self._last.get(type(request), (None, b""))
        if last is not None and _shares(request, last):
            after = _BROKER_EPOCH_AT + _broker_epoch.size
            return body[:_BROKER_EPOCH_AT] + _broker_epoch.pack(request.broker_epoch) + body[after:]
        body = codec(type(request), SHARED.version_of(key_of(type(request)))).encode(request)
        self._last[type(request)] = request, body
        return body


def _shares(one: Message, other: Message) -> bool:
    """Whether two requests hold the same objects, but for the epoch of their broker."""
    return all(getattr(one, each) is getattr(other, each) for each in one.__struct_fields__ if each != "broker_epoch")


class ControlLinks:
    """Connections to brokers. `client_id`: by which they know this one. `protocol`: in which they are asked.
    `timeout_ms`: controller.socket.timeout.ms, for a connection and for each answer."""

    def __init__(self, network: Network, client_id: str, protocol: ProtocolVersion, timeout_ms: int) -> None:
        self._network = network
        self._protocol = protocol
        self._client_id = client_id
        self._timeout_us = timeout_ms * 1000
        self._open: dict[int, tuple[LiveBroker, Connection[Call, Message]]] = {}
        self._bodies = SharedBodies()

    async def deliver(
        self, broker: LiveBroker, request: ControlRequest | AlterPartitionRequest | ControlledShutdownRequest
    ) -> Message:
        """The broker's answer. Raises Undelivered."""
        try:
            connection = await self._connection(broker)
            return merged([await self._asked(connection, each) for each in self._protocol.messages(request)])
        except NetworkError as error:
            self._drop(broker.broker_id)
            raise Undelivered(str(error)) from None

    async def _asked(self, connection: Connection[Call, Message], message: Message) -> Message:
        version = self._protocol.version_of(key_of(type(message)))
        asked = Call.of(message, version, self._client_id, self._body(message))
        return await connection.request(asked, timeout_us=self._timeout_us)

    def _body(self, request: Message) -> Callable[[], bytes] | None:
        """Encodes a request that several brokers may be sent; None for others."""
        if self._protocol is SHARED and isinstance(request, LeaderAndIsrRequest | UpdateMetadataRequest):
            return partial(self._bodies.encoded, request)
        return None

    async def _connection(self, broker: LiveBroker) -> Connection[Call, Message]:
        """The connection to this life of the broker; that to an earlier one is closed."""
        known, found = self._open.get(broker.broker_id, (None, None))
        if found is not None and known == broker and not found.ended.done:
            return found
        self._drop(broker.broker_id)
        address = Address(broker.host, broker.port)
        found = await self._network.connect(address, KafkaCodec(), timeout_us=self._timeout_us)
        self._open[broker.broker_id] = (broker, found)
        return found

    def _drop(self, broker_id: int) -> None:
        if broker_id in self._open:
            self._open.pop(broker_id)[1].close()

    def close(self) -> None:
        for broker_id in list(self._open):
            self._drop(broker_id)
