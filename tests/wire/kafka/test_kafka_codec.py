"""Kafka's messages: written and read again in every version, and what is refused."""

from __future__ import annotations

import random
from typing import Annotated, Any, cast

import msgspec
import pytest
from kafka_samples import message_versions, sample

from rebalance_lab.wire.kafka import primitives
from rebalance_lab.wire.kafka.apis import APIS, ApiKey
from rebalance_lab.wire.kafka.codec import Codec, codec
from rebalance_lab.wire.kafka.errors import MalformedMessage, UnsupportedVersion, UnwritableMessage
from rebalance_lab.wire.kafka.messages.create_topics import CreateTopicsRequest
from rebalance_lab.wire.kafka.messages.fetch import EpochEndOffset, FetchResponse, PartitionData
from rebalance_lab.wire.kafka.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from rebalance_lab.wire.kafka.messages.metadata import MetadataRequest, MetadataRequestTopic
from rebalance_lab.wire.kafka.messages.update_metadata import UpdateMetadataRequest
from rebalance_lab.wire.kafka.schema import (
    NO_VERSIONS,
    ZERO_UUID,
    Message,
    Versions,
    fields_of,
    read_versions,
    wire,
)

IDS = [f"{message.__name__}-{version}" for message, version in message_versions()]


@pytest.mark.parametrize(("message", "version"), list(message_versions()), ids=IDS)
def test_every_version_is_read_as_it_was_written(message: Any, version: int) -> None:
    chance = random.Random(f"{message.__name__} {version}")
    for _ in range(5):
        written = sample(message, version, chance)
        data = codec(message, version).encode(written)
        assert codec(message, version).decode(data) == written
        assert codec(message, version).read(b"ab" + data + b"cd", 2) == (written, len(data) + 2)


def test_request_and_response_have_the_same_versions() -> None:
    for api in APIS.values():
        assert api.request.VERSIONS == api.response.VERSIONS, api.name
        assert api.versions.first == 0, api.name


def test_versions_are_ranges() -> None:
    assert read_versions("3") == Versions(3, 3)
    assert read_versions("0-4") == Versions(0, 4)
    assert read_versions("none") == NO_VERSIONS
    assert 7 in read_versions("2+")
    assert 1 not in read_versions("2+")
    assert 0 not in NO_VERSIONS
    assert "2" not in read_versions("2+")


def test_a_version_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UnsupportedVersion, match=r"^MetadataRequest has versions 0 to 12, not 13$"):
        codec(MetadataRequest, 13)
    with pytest.raises(UnsupportedVersion):
        codec(MetadataRequest, -1)


def test_a_codec_is_compiled_once_and_says_what_it_is() -> None:
    found = codec(MetadataRequest, 9)
    assert codec(MetadataRequest, 9) is found
    assert isinstance(found, Codec)
    assert repr(found) == "<Codec MetadataRequest version 9>"


class Part(msgspec.Struct, frozen=True, kw_only=True):
    number: Annotated[int, wire("uint32", "0+")]


class Rare(Message, frozen=True, kw_only=True):
    """What Kafka's definitions can say, and none of the generated messages does yet."""

    VERSIONS = read_versions("0-1")
    FLEXIBLE = read_versions("1+")

    part: Annotated[Part | None, wire("struct", "0+", nullable="0+")] = None
    ids: Annotated[tuple[bytes, ...], wire("[]uuid", "0+")] = ()
    numbers: Annotated[tuple[int, ...] | None, wire("[]int64", "0+", nullable="0+")] = None
    pieces: Annotated[tuple[bytes, ...], wire("[]bytes", "0+")] = ()
    port: Annotated[int, wire("uint16", "0+")] = 0
    share: Annotated[float, wire("float64", "0+")] = 0.0


@pytest.mark.parametrize("version", [0, 1])
def test_what_no_message_needs_yet_works_too(version: int) -> None:
    whole = Rare(part=Part(number=1 << 31), ids=(bytes(16), b"x" * 16), numbers=(), pieces=(b"", b"a"), port=65535)
    for message in (Rare(), whole, Rare(share=0.1, numbers=tuple(range(30)))):
        data = codec(Rare, version).encode(message)
        assert codec(Rare, version).decode(data) == message
        for cut in range(len(data)):
            with pytest.raises(MalformedMessage):
                codec(Rare, version).decode(data[:cut])
    empty = {0: "ff 00000000 ffffffff 00000000", 1: "ff 01 00 01"}[version]
    assert codec(Rare, version).encode(Rare())[: -10 - version].hex(" ") == bytes.fromhex(empty).hex(" ")
    with pytest.raises(UnwritableMessage, match=r"field ids\[1\]: 3 bytes; a uuid has 16"):
        codec(Rare, version).encode(Rare(ids=(bytes(16), b"abc")))


# -- reading ----------------------------------------------------------------------------------


def refusal(message: Any, version: int, data: str) -> MalformedMessage:
    """Why these bytes, given in hexadecimal, are not this message."""
    with pytest.raises(MalformedMessage) as refused:
        codec(message, version).decode(bytes.fromhex(data))
    return refused.value


@pytest.mark.parametrize(
    ("message", "version", "data", "field", "offset", "reason"),
    [
        (MetadataRequest, 0, "", "topics", 0, "the bytes end here"),
        (MetadataRequest, 0, "000000", "topics", 0, "the bytes end here"),
        (MetadataRequest, 0, "ffffffff", "topics", 4, "null, which this version does not allow"),
        (MetadataRequest, 0, "fffffffe", "topics", 4, "-2 items"),
        (MetadataRequest, 0, "7fffffff", "topics", 4, "2147483647 items announced"),
        (MetadataRequest, 0, "00000001 0003 6162", "topics[0].name", 6, "3 bytes announced, 2 left"),
        (MetadataRequest, 0, "00000001 ffff", "topics[0].name", 6, "null, which this version does not allow"),
        (MetadataRequest, 0, "00000001 fffe", "topics[0].name", 6, "a length of -2"),
        (MetadataRequest, 0, "00000000 00", "", 4, "1 bytes follow the message"),
        (MetadataRequest, 1, "fffffffe", "topics", 4, "-2 items"),
        (MetadataRequest, 9, "ffffffff7f", "topics", 0, "a varint of 34359738367, which is over 31 bits"),
        (MetadataRequest, 9, "808080808001", "topics", 0, "a varint of more than five bytes"),
        (MetadataRequest, 9, "80", "topics", 0, "the bytes end here"),
        (MetadataRequest, 9, "01 00 00 00 01 00 05", "tagged fields", 7, "a tagged field of 5 bytes, 0 left"),
        (MetadataRequest, 9, "01 00 00 00 09", "tagged fields", 5, "9 items announced"),
        (UpdateMetadataRequest, 0, "00000001 0000", "controller_epoch", 4, "the bytes end here"),
    ],
)
def test_what_is_wrong_is_named(message: Any, version: int, data: str, field: str, offset: int, reason: str) -> None:
    refused = refusal(message, version, data)
    assert (refused.field, refused.offset) == (field, offset)
    assert refused.reason.startswith(reason)
    assert (refused.message, refused.version) == (message.__name__, version)
    place = f", field {field}" if field else ""
    assert str(refused).startswith(f"{message.__name__} version {version}{place}, at byte {offset}: {reason}")


def test_strings_that_are_not_utf_8_are_read_as_java_reads_them() -> None:
    found = codec(MetadataRequest, 0).decode(bytes.fromhex("00000001 0003 61ff62"))
    assert found == MetadataRequest(topics=(MetadataRequestTopic(name="a\ufffdb"),))


def test_a_tagged_field_must_be_as_long_as_it_says() -> None:
    whole = FetchResponse(
        responses=(),
        session_id=3,
    )
    assert codec(FetchResponse, 16).decode(codec(FetchResponse, 16).encode(whole)) == whole
    head = codec(FetchResponse, 16).encode(whole)[:-1].hex()
    assert refusal(FetchResponse, 16, f"{head} 01 00 02 01 00").field == "node_endpoints"
    assert refusal(FetchResponse, 16, f"{head} 01 00 00 01").reason == "its value ends at byte 15, its size at 14"


def test_a_tagged_field_that_nobody_knows_is_skipped() -> None:
    whole = MetadataRequest(topics=(MetadataRequestTopic(name="t"),))
    data = codec(MetadataRequest, 9).encode(whole)
    assert codec(MetadataRequest, 9).decode(data[:-1] + bytes.fromhex("02 05 02 abcd 06 00")) == whole


def test_tagged_fields_are_written_where_they_differ_from_their_default() -> None:
    plain = PartitionData(partition_index=0, error_code=0, high_watermark=5, records=None)
    assert plain.diverging_epoch == EpochEndOffset()
    for version in range(FetchResponse.VERSIONS.last + 1):
        data = codec(FetchResponse, version).encode(FetchResponse(responses=()))
        assert codec(FetchResponse, version).decode(data) == FetchResponse(responses=())


def test_the_items_of_a_message_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = tuple(MetadataRequestTopic(name="") for _ in range(50))
    data = codec(MetadataRequest, 0).encode(MetadataRequest(topics=topics))
    monkeypatch.setattr("rebalance_lab.wire.kafka.codec.MOST_ITEMS", 50)
    assert len(codec(MetadataRequest, 0).decode(data).topics) == 50
    monkeypatch.setattr("rebalance_lab.wire.kafka.codec.MOST_ITEMS", 49)
    assert refusal(MetadataRequest, 0, data.hex()).reason == f"more than {primitives.MOST_ITEMS} items in one message"


# -- writing ----------------------------------------------------------------------------------


def partition(**changed: Any) -> LeaderAndIsrPartitionState:
    given: dict[str, Any] = {
        "partition_index": 0,
        "controller_epoch": 1,
        "leader": 1,
        "leader_epoch": 0,
        "isr": (1,),
        "partition_epoch": 0,
        "replicas": (1, 2),
    }
    return LeaderAndIsrPartitionState(**given | changed)


def request(*partitions: LeaderAndIsrPartitionState, **changed: Any) -> LeaderAndIsrRequest:
    topics = (LeaderAndIsrTopicState(topic_name="t", partition_states=partitions),)
    given: dict[str, Any] = {"controller_id": 1, "controller_epoch": 1, "topic_states": topics, "live_leaders": ()}
    return LeaderAndIsrRequest(**given | changed)


@pytest.mark.parametrize(
    ("message", "version", "field", "reason"),
    [
        (request(), 1, "topic_states", "this version does not have the field"),
        (request(partition(), partition(leader=1 << 40)), 2, "topic_states[0].partition_states[1].leader", "'i' fo"),
        (request(partition(isr=(1, "2"))), 2, "topic_states[0].partition_states[0].isr", "required argument"),
        (request(partition(isr=None)), 4, "topic_states[0].partition_states[0].isr", "object of type 'NoneType'"),
        (request(partition(isr=(1 << 40,) * 17)), 4, "topic_states[0].partition_states[0].isr", "'i' format"),
        (request(live_leaders=(LeaderAndIsrLiveLeader(broker_id=1, host_name="x" * 40000, port=1),)), 2,
         "live_leaders[0].host_name", "'h' format"),
        (request(live_leaders=(LeaderAndIsrLiveLeader(broker_id=1, host_name="\ud800", port=1),)), 2,
         "live_leaders[0].host_name", "'utf-8' codec can't encode"),
        (request(live_leaders=(LeaderAndIsrLiveLeader(broker_id=1, host_name=None, port=1),)), 2,
         "live_leaders[0].host_name", "'NoneType' object has no attribute 'encode'"),
        (MetadataRequest(topics=(MetadataRequestTopic(name="t", topic_id=b"x"),)), 10, "topics[0].topic_id",
         "1 bytes; a uuid has 16"),
        (FetchResponse(responses=(cast(Any, request()),)), 12, "responses[0].topic", "'LeaderAndIsrRequest' object"),
        (MetadataRequest(topics=None), 0, "topics", "object of type 'NoneType'"),
        (CreateTopicsRequest(topics=(), timeout_ms=1, validate_only=True), 0, "validate_only", "this version"),
    ],
)  # fmt: skip
def test_what_cannot_be_written_is_named(message: Any, version: int, field: str, reason: str) -> None:
    with pytest.raises(UnwritableMessage) as refused:
        codec(type(message), version).encode(message)
    assert refused.value.field == field
    assert refused.value.reason.startswith(reason)
    assert str(refused.value).startswith(f"{type(message).__name__} version {version}, field {field}: {reason}")


def test_an_ignorable_field_is_dropped_where_the_version_lacks_it() -> None:
    data = codec(LeaderAndIsrRequest, 2).encode(request(partition(adding_replicas=(4,))))
    assert codec(LeaderAndIsrRequest, 2).decode(data) == request(partition())


# -- the classes ------------------------------------------------------------------------------


def test_fields_in_every_version_must_be_given_and_others_have_kafkas_default() -> None:
    with pytest.raises(TypeError, match="controller_id"):
        LeaderAndIsrRequest(controller_epoch=1, live_leaders=())  # type: ignore[call-arg]
    assert request().broker_epoch == -1
    assert MetadataRequestTopic(name=None).topic_id == ZERO_UUID
    with pytest.raises(AttributeError, match="immutable"):
        request().controller_id = 2  # type: ignore[misc]


def test_fields_know_their_structure_and_tag() -> None:
    found = {each.name: each for each in fields_of(PartitionData)}
    assert found["diverging_epoch"].struct is EpochEndOffset
    assert found["diverging_epoch"].wire.tag == 0
    assert found["records"].struct is None
    assert ApiKey.FETCH == 1
