"""Round robin by thread, as Kafka 0.8.2 dealt it (`kafka.consumer.RoundRobinAssignor`).

All partitions of a member's topics are put in the order of a hash and dealt to the group's
threads in turn. The hash is Java's, of the text `[topic,partition]`. It does not mix much:
partitions 0 to 9 of one topic always stand in a row, 31 apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from rebalance_lab.assignors.model import (
    Assignment,
    AssignmentContext,
    NoTopics,
    RequirementFailed,
    TopicPartition,
    java_order,
)


def java_hash(text: str, after: int = 0) -> int:
    """Java's `String.hashCode`, signed, 32 bit, over UTF-16 code units. `after`: the hash of
    a text that stands before this one."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = after & 0xFFFF_FFFF
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFF_FFFF
    return value - (1 << 32) if value & 0x8000_0000 else value


def round_robin(context: AssignmentContext) -> Assignment:
    """Deal by turns. Raises RequirementFailed when topics differ in their threads, and NoTopics.

    Each member deals all partitions of *its own* topics and keeps what falls to its threads.
    Where two partitions have equal hashes, `map_order` of the member's own topics decides, so
    members that list such topics in another order compute another plan: one partition with
    two owners, another with none, forever.
    """
    threads = _threads_of_all(context)
    mine = frozenset(thread for each in context.my_threads.values() for thread in each)
    order = _dealing_order(tuple(context.partitions.items()))
    owners = [
        (each, thread) for turn, thread in enumerate(threads) if thread in mine for each in order[turn :: len(threads)]
    ]
    return Assignment(tuple(sorted(owners)))


def map_order(topics: Iterable[str]) -> list[str]:
    """The order in which a member walks through its own topics, given as it registered them.

    0.8.2 copies the registration through three Scala hash maps. Within a bucket each copy
    turns the order round, so topics of equal hash come out last registered first; that is what
    the golden vectors show (case `hash_collision_topics`). Topics of other hashes have another
    bucket as a rule, in the same order for every member. Here they stand by their hash. The
    order of Scala's buckets is not copied: it only shows where the texts of two partitions
    collide and their topics do not, and no recorded case does.
    """
    last_first = [*topics][::-1]
    return sorted(last_first, key=java_hash)  # stable


@lru_cache(maxsize=16)  # most members of a group ask for the same
def _dealing_order(partitions: tuple[tuple[str, tuple[int, ...]], ...]) -> tuple[TopicPartition, ...]:
    numbers = dict(partitions)
    hashes: dict[TopicPartition, int] = {}
    for topic in map_order(numbers):
        before = java_hash(f"[{topic},")
        for each in numbers[topic]:
            hashes[TopicPartition(topic, each)] = java_hash(f"{each}]", before)
    return tuple(sorted(hashes, key=hashes.__getitem__))  # stable: ties stay in the order of the map


def _threads_of_all(context: AssignmentContext) -> tuple[str, ...]:
    """The group's threads, in Java's order. Every topic of anybody must have the same.

    The text of the refusal is Kafka's. Topics and threads stand sorted in it; Kafka prints
    them as its maps and sets have them.
    """
    topics = sorted(context.threads, key=java_order)
    if not topics:
        raise NoTopics(
            f"{context.consumer_id}: group {context.group} subscribes to no topic, and round robin needs one; "
            "a filter waits here for its first topic"
        )
    head = topics[0]
    for topic in topics:
        if context.threads[topic] != context.threads[head]:
            raise RequirementFailed(
                "requirement failed: Round-robin assignment is allowed only if all consumers in the group subscribe "
                "to the same topics, AND if the stream counts across topics are identical for a given consumer "
                f"instance.\n{_streams(context, topic)}{_streams(context, head)}"
            )
    return context.threads[head]


def _streams(context: AssignmentContext, topic: str) -> str:
    return f"Topic {topic} has the following available consumer streams: Set({', '.join(context.threads[topic])})\n"
