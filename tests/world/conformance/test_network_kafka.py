"""Kafka's protocol on the port to a network: messages as objects, as bytes, and on TCP, also of strangers."""

from __future__ import annotations

import socket

import pytest
from conformance_network import LiveNetworkHarness, NetworkHarness, SimulatedNetworkHarness

from rebalance_lab.wire.kafka.apis import APIS, ApiKey
from rebalance_lab.wire.kafka.calls import Call, KafkaCodec
from rebalance_lab.wire.kafka.codec import codec
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from rebalance_lab.wire.kafka.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from rebalance_lab.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from rebalance_lab.wire.kafka.schema import Message
from rebalance_lab.world.network import ConnectionLost, Listener, ServerConnection

KAFKA = KafkaCodec()

API_VERSIONS = ApiVersionsResponse(
    error_code=ErrorCode.NONE,
    api_keys=tuple(
        ApiVersion(api_key=key, min_version=api.request.VERSIONS.first, max_version=api.request.VERSIONS.last)
        for key, api in APIS.items()
    ),
)
METADATA = MetadataResponse(
    brokers=(MetadataResponseBroker(node_id=1, host="b", port=9092),),
    topics=(MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name="orders", partitions=()),),
)


def call(key: ApiKey, version: int, message: Message) -> Call:
    return Call(key, version, "test", message)


async def serve(server: ServerConnection[Call, Message], produced: list[Message | None]) -> None:
    """Answer as a broker without a topic."""
    while True:
        asked = await server.receive()
        if asked.key is ApiKey.PRODUCE:
            produced.append(asked.message)  # acks=0 wants no reply
        elif asked.key is ApiKey.METADATA:
            await server.reply(METADATA)
        elif asked.message is None:
            await server.reply(ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=()))
        else:
            await server.reply(API_VERSIONS)


@pytest.mark.parametrize("world", ["objects", "bytes", "live"])
def test_requests_of_several_versions_and_one_without_a_reply(world: str) -> None:
    harness = LiveNetworkHarness() if world == "live" else SimulatedNetworkHarness(1, through_bytes=world == "bytes")
    records = PartitionProduceData(index=0, records=b"\0" * 70)
    produce = ProduceRequest(
        acks=0, timeout_ms=1000, topic_data=(TopicProduceData(name="orders", partition_data=(records,)),)
    )

    async def story(h: NetworkHarness) -> None:
        produced: list[Message | None] = []
        listener: Listener[Call, Message] = await h.networks["b"].listen(KAFKA)
        client = await h.networks["a"].connect(listener.address, KAFKA, timeout_us=10_000_000)
        async with h.kernel.scope("broker") as scope:
            scope.spawn(serve(await listener.accept(), produced), "connection")
            versions = ApiVersionsRequest(client_software_name="lab", client_software_version="1")
            assert await client.request(call(ApiKey.API_VERSIONS, 3, versions)) == API_VERSIONS
            await client.send(call(ApiKey.PRODUCE, 9, produce))
            request = MetadataRequest(topics=(MetadataRequestTopic(name="orders"),))
            replies = [client.request(call(ApiKey.METADATA, version, request)) for version in (1, 4, 9)]
            assert [await reply for reply in replies] == [METADATA] * 3
            assert produced == [produce]
            scope.cancel("the story ends")

    harness.run(story)


def on_tcp(*frames: bytes) -> list[bytes]:
    """What a broker's host answers to these bytes before it ends the connection; frames without their lengths."""
    answers: list[bytes] = []

    async def story(h: NetworkHarness) -> None:
        listener: Listener[Call, Message] = await h.networks["b"].listen(KAFKA)
        client = socket.create_connection((listener.address.host, listener.address.port), timeout=10)
        for frame in frames:
            client.sendall(len(frame).to_bytes(4, "big") + frame)
        client.shutdown(socket.SHUT_WR)
        server = await listener.accept()
        with pytest.raises(ConnectionLost):
            await serve(server, [])
        with client, client.makefile("rb") as read:
            while length := read.read(4):
                answers.append(read.read(int.from_bytes(length, "big")))

    LiveNetworkHarness().run(story)
    return answers


def test_a_client_that_asks_in_a_version_of_tomorrow_learns_the_versions_of_today() -> None:
    header = b"\0\x12" + b"\0\x63" + b"\0\0\0\x07" + b"\xff\xff" + b"\0"  # ApiVersions 99, no client id, no tags
    (answer,) = on_tcp(header + b"whatever it has")
    assert answer[:4] == b"\0\0\0\x07"
    found = codec(ApiVersionsResponse, 0).decode(answer, 4)
    assert found.error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\0\x12\0\x03",
        b"\x03\xe7\0\0\0\0\0\0\xff\xff",  # API 999
        b"\0\x03\0\x63\0\0\0\0\xff\xff\0",  # Metadata 99
        b"\0\x03\0\x01\0\0\0\0\xff\xff\x7f\xff\xff\xff",  # two thousand million topics
    ],
)
def test_what_is_no_request_gets_no_answer(frame: bytes) -> None:
    assert on_tcp(frame) == []
