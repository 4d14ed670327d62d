"""Group, topic, partition and member of a znode, by its path and data."""

from __future__ import annotations

from typing import NamedTuple


class ZnodeFacts(NamedTuple):
    """Group, topic, partition and member (a consumer id) of one znode; None if it has none."""

    group: str | None = None
    topic: str | None = None
    partition: int | None = None
    member: str | None = None


def describe(path: str, data: bytes) -> ZnodeFacts:
    """The facts of one znode of Kafka 0.8. Other paths have none. Nothing raises: a registry
    may hold anything.

    The member of an owner znode comes from its data, a thread id (`<consumer id>-<i>`).
    """
    parts = path.split("/")[1:]
    if parts[:1] == ["consumers"]:
        return _of_group(parts[1:], data)
    if parts[:2] == ["brokers", "topics"] and len(parts) > 2:
        partition = _number(parts[4]) if len(parts) > 4 and parts[3] == "partitions" else None
        return ZnodeFacts(topic=parts[2], partition=partition)
    return ZnodeFacts()


def _of_group(parts: list[str], data: bytes) -> ZnodeFacts:
    match parts:
        case [group, "ids", member]:
            return ZnodeFacts(group=group, member=member)
        case [group, "owners", topic, partition]:
            return ZnodeFacts(group, topic, _number(partition), _consumer_of(data))
        case [group, "offsets", topic, partition]:
            return ZnodeFacts(group, topic, _number(partition))
        case [group, "owners" | "offsets", topic]:
            return ZnodeFacts(group, topic)
        case _:
            return ZnodeFacts(group=parts[0] if parts else None)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None


def _consumer_of(thread_id: bytes) -> str | None:
    consumer_id, dash, _ = thread_id.decode("utf-8", "replace").rpartition("-")
    return consumer_id if dash else None
