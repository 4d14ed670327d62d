"""The small text files of a broker's folder (Kafka 3.9.1: `CheckpointFile`, `OffsetCheckpointFile`,
`LeaderEpochCheckpointFile`, `MetaProperties`, `CleanShutdownFileHandler`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.log.epochs import EpochStart

_VERSION = "0"

#: A line that a `.properties` file of Java's begins with a comment, or is empty.
_COMMENT = re.compile(r"\s*([#!].*)?")
_PROPERTY = re.compile(r"\s*(?P<key>[^\s=:]+)\s*[=:\s]\s*(?P<value>.*)")


class MalformedFile(Exception):
    """A file of the broker's folder that cannot be read. The message has no path: whoever has read the file adds it."""


class MetaProperties(msgspec.Struct, frozen=True, kw_only=True):
    """Whose folder this is: `meta.properties`, version 0."""

    cluster_id: str
    broker_id: int


def write_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """A checkpoint of one offset for each partition."""
    return _checkpoint(f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items()))


def read_offsets(data: bytes) -> dict[TopicPartition, int]:
    """Raises MalformedFile."""
    found = {}
    for line in _entries(data):
        topic, partition, offset = _fields(line, 3)
        found[TopicPartition(topic, _number(partition, line))] = _number(offset, line)
    return found


def write_epochs(epochs: Iterable[EpochStart]) -> bytes:
    """`leader-epoch-checkpoint`."""
    return _checkpoint(f"{epoch} {offset}" for epoch, offset in epochs)


def read_epochs(data: bytes) -> list[EpochStart]:
    """Raises MalformedFile."""
    found = []
    for line in _entries(data):
        epoch, offset = _fields(line, 2)
        found.append(EpochStart(_number(epoch, line), _number(offset, line)))
    return found


def write_meta(meta: MetaProperties) -> bytes:
    return f"#\nbroker.id={meta.broker_id}\ncluster.id={meta.cluster_id}\nversion={_VERSION}\n".encode()


def read_meta(data: bytes) -> MetaProperties:
    """Raises MalformedFile."""
    found = {}
    for line in _text(data).splitlines():
        if not _COMMENT.fullmatch(line):
            match = _PROPERTY.fullmatch(line)
            if match is None:
                raise MalformedFile(f"line {line!r} is not key=value")
            found[match["key"]] = match["value"].strip()
    if found.get("version") != _VERSION:
        raise MalformedFile(
            f"it has version {found.get('version')}, and a broker with ZooKeeper has version {_VERSION}"
        )
    if missing := [key for key in ("broker.id", "cluster.id") if key not in found]:
        raise MalformedFile(f"it lacks {' and '.join(missing)}")
    return MetaProperties(cluster_id=found["cluster.id"], broker_id=_number(found["broker.id"], "broker.id"))


def write_clean_shutdown(broker_epoch: int) -> bytes:
    return msgspec.json.encode({"version": int(_VERSION), "brokerEpoch": broker_epoch})


def _checkpoint(lines: Iterable[str]) -> bytes:
    entries = list(lines)
    return "".join(f"{line}\n" for line in (_VERSION, len(entries), *entries)).encode()


def _entries(data: bytes) -> list[str]:
    """The lines of a checkpoint after version and count. A file that was created and not written has none."""
    lines = _text(data).splitlines()
    if not lines:
        return []
    if lines[0] != _VERSION:
        raise MalformedFile(f"it has version {lines[0]!r}, and version {_VERSION} can be read")
    if len(lines) == 1:
        return []
    count = _number(lines[1], lines[1])
    if len(lines) - 2 != count:
        raise MalformedFile(f"it announces {count} entries and has {len(lines) - 2}")
    return lines[2:]


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise MalformedFile(f"byte {error.start} is not UTF-8") from None


def _fields(line: str, count: int) -> list[str]:
    fields = line.split()
    if len(fields) != count:
        raise MalformedFile(f"line {line!r} has {len(fields)} fields instead of {count}")
    return fields


def _number(text: str, line: str) -> int:
    if not re.fullmatch(r"\d{1,19}", text, re.ASCII):
        raise MalformedFile(f"line {line!r}: {text!r} is not a number")
    return int(text)
