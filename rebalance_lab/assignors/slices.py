"""Rules that give each thread one slice of a topic's partitions: range, and the articles' ceil."""

from __future__ import annotations

from typing import Protocol

from rebalance_lab.assignors.model import Assignment, AssignmentContext, TopicPartition


class _Slice(Protocol):
    def __call__(self, position: int, *, partitions: int, threads: int) -> tuple[int, int]:
        """(start, length) of the thread at `position`."""
        ...


def range_slice(position: int, *, partitions: int, threads: int) -> tuple[int, int]:
    """Kafka 0.8.2's RangeAssignor: lengths differ by one at most, the first
    `partitions mod threads` threads have the longer ones."""
    quotient, rest = divmod(partitions, threads)
    return quotient * position + min(position, rest), quotient + (1 if position < rest else 0)


def ceil_slice(position: int, *, partitions: int, threads: int) -> tuple[int, int]:
    """The articles' rule (claim Z5b): N = ceil(P / C), the i-th takes iN to (i+1)N-1. The last
    threads may get less, or nothing."""
    each = -(-partitions // threads)
    start = min(each * position, partitions)
    return start, min(each, partitions - start)


def range_08(context: AssignmentContext) -> Assignment:
    """Deal by range. Raises AssignmentError."""
    return _deal(context, range_slice)


def ceil(context: AssignmentContext) -> Assignment:
    """Deal by N = ceil(P / C). Raises AssignmentError."""
    return _deal(context, ceil_slice)


def _deal(context: AssignmentContext, slice_of: _Slice) -> Assignment:
    owners: list[tuple[TopicPartition, str]] = []
    warnings: list[str] = []
    for topic in sorted(context.my_threads):
        partitions, threads = context.topic(topic)
        for thread in context.my_threads[topic]:
            position = context.position(topic, thread)
            start, length = slice_of(position, partitions=len(partitions), threads=len(threads))
            if length <= 0:
                warnings.append(f"No broker partitions consumed by consumer thread {thread} for topic {topic}")
            owners.extend((TopicPartition(topic, each), thread) for each in partitions[start : start + length])
    return Assignment(tuple(sorted(owners)), tuple(warnings))
