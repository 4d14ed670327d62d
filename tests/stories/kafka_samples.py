"""Random messages and records of Kafka's protocol, for tests that write and read them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import msgspec

from rebalance_lab.wire.kafka.apis import APIS
from rebalance_lab.wire.kafka.messages import consumer_protocol, headers, offsets_topic
from rebalance_lab.wire.kafka.records import Record
from rebalance_lab.wire.kafka.schema import NUMBERS, STRUCT, Field, Message, fields_of

STORED: tuple[type[Message], ...] = (
    headers.RequestHeader,
    headers.ResponseHeader,
    consumer_protocol.ConsumerProtocolSubscription,
    consumer_protocol.ConsumerProtocolAssignment,
    offsets_topic.OffsetCommitKey,
    offsets_topic.OffsetCommitValue,
    offsets_topic.GroupMetadataKey,
    offsets_topic.GroupMetadataValue,
)

BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}

#: What lengths and counts are made of: none, null, huge, negative, and varints that do not end.
EDGES = [bytes.fromhex(each) for each in ("00", "01", "7f", "80", "ff", "ffff", "7fffffff", "ffffffff", "ffffffff0f")]

TEXTS = ("", "a", "topic-1", "ü" * 70, "日本", "x" * 200)
PIECES = (b"", b"\x01\x02\x03", bytes(130))


def message_versions() -> Iterator[tuple[type[Message], int]]:
    """Every message in every version."""
    of_apis = (each for api in APIS.values() for each in (api.request, api.response))
    for message in (*of_apis, *STORED):
        for version in range(message.VERSIONS.first, message.VERSIONS.last + 1):
            yield message, version


def sample(message: type[msgspec.Struct], version: int, chance: random.Random) -> Any:
    """A message with a value in each field that `version` has, and the default in the others."""
    return message(
        **{
            each.name: _value(each, each.wire.kind, version, chance)
            for each in fields_of(message)
            if version in each.wire.versions
        }
    )


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The same with bytes replaced, cut out or put in."""
    out = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(out) + 1)
        piece = chance.choice([*EDGES, chance.randbytes(chance.randrange(6))])
        out[at : at + chance.choice([0, len(piece), chance.randrange(20)])] = piece
    return bytes(out)


def sample_record(chance: random.Random) -> Record:
    """A record of some bytes, of which the value shrinks when it is compressed."""
    names = chance.choice([(), ("a",), ("a", "ü", "")])
    return Record(
        key=chance.choice([None, b"", b"key", chance.randbytes(chance.randrange(300))]),
        value=chance.choice([None, b"", b"value " * chance.randrange(5_000), chance.randbytes(100)]),
        timestamp_ms=1_700_000_000_000 + chance.randrange(-1_000, 100_000),
        headers=tuple((name, chance.choice([None, b"", b"x"])) for name in names),
    )


def _value(field: Field, kind: str, version: int, chance: random.Random) -> Any:
    if version in field.wire.nullable and kind == field.wire.kind and chance.random() < 0.2:
        return None
    if kind.startswith("[]"):
        most = 20 if kind[2:] in NUMBERS else 3
        return tuple(_value(field, kind[2:], version, chance) for _ in range(chance.randrange(most)))
    if kind == STRUCT:
        assert field.struct is not None
        return sample(field.struct, version, chance)
    return _plain(kind, chance)


def _plain(kind: str, chance: random.Random) -> Any:
    if kind == "string":
        return chance.choice(TEXTS)
    if kind in {"bytes", "records"}:
        return chance.choice(PIECES)
    if kind == "uuid":
        return chance.randbytes(16)
    if kind == "bool":
        return chance.random() < 0.5
    most = 1 << BITS[kind] - 1
    return chance.choice([0, 1, -1, 5, most - 1, -most])
