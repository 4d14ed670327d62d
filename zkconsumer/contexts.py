"""From what members subscribe to, to what each of them gives its assignor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from rebalance_lab.assignors import AssignmentContext, java_order
from rebalance_lab.wire.registration import Registration, read_registration
from zkconsumer.identifiers import thread_ids

Threads = Mapping[str, tuple[str, ...]]


def threads_of(
    consumer_id: str, registration: Registration, topics: Iterable[str] = (), *, exclude_internal: bool = True
) -> dict[str, tuple[str, ...]]:
    """topic -> thread ids of one member, in the order of its registration. `topics`: all that
    exist, which only a wildcard needs. Raises KafkaException for a bad filter."""
    streams = registration.streams(topics, exclude_internal=exclude_internal)
    return {topic: thread_ids(consumer_id, count) for topic, count in streams.items()}


@lru_cache(maxsize=1 << 15)  # each member reads all others, in each attempt
def named_threads(consumer_id: str, data: bytes) -> Threads | None:
    """The same from a registration's payload, where it names its topics; None for a wildcard.
    Raises KafkaException."""
    registration = read_registration(data)
    return None if registration.wildcard else threads_of(consumer_id, registration)


def group_threads(members: Iterable[Threads]) -> dict[str, tuple[str, ...]]:
    """topic of anybody -> the threads of all members, in Java's string order."""
    found: dict[str, list[str]] = {}
    for member in members:
        for topic, threads in member.items():
            found.setdefault(topic, []).extend(threads)
    return {topic: _in_java_order(found[topic]) for topic in sorted(found)}


def _in_java_order(texts: list[str]) -> tuple[str, ...]:
    """As `java_order` sorts; most ids are ASCII, where Python's own order is the same, and fast."""
    return tuple(sorted(texts) if "".join(texts).isascii() else sorted(texts, key=java_order))


def contexts(
    group: str, registrations: Mapping[str, Registration], topics: Mapping[str, int]
) -> list[AssignmentContext]:
    """What every member of a settled group sees, without a ZooKeeper: all see the same.

    `registrations`: consumer id -> what it registered; `topics`: every topic that exists ->
    its partitions. Raises KafkaException for a bad filter.
    """
    members = {name: threads_of(name, each, topics) for name, each in registrations.items()}
    everybody = group_threads(members.values())
    partitions = {topic: tuple(range(topics.get(topic, 0))) for topic in everybody}
    return [
        AssignmentContext(group, name, mine, {topic: partitions[topic] for topic in mine}, everybody)
        for name, mine in members.items()
    ]
