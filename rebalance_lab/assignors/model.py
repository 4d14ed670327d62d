"""Input and result of an assignor of the 0.8 consumer.

Each member computes its own assignment from what it has read; members exchange nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import NamedTuple, Protocol


class TopicPartition(NamedTuple):
    """One partition; sorts by topic, then number."""

    topic: str
    partition: int


def partitions_of(topic: str, numbers: Iterable[int]) -> list[TopicPartition]:
    """The partitions of a topic with these numbers, in half the time that single calls take: a controller makes those
    of all topics when it takes over."""
    return list(map(partial(tuple.__new__, TopicPartition), zip(repeat(topic), numbers)))


class AssignmentError(Exception):
    """The context contradicts itself, so nothing can be assigned. The message names member and topic. In a rebalance
    this is a failed attempt."""


class RequirementFailed(AssignmentError):
    """The assignor does not allow this group (in 0.8.2 an IllegalArgumentException). The message is Kafka's."""


class NoTopics(AssignmentError):
    """No member of the group subscribes to a topic (in 0.8.2 a NoSuchElementException)."""


class UnknownAssignor(ValueError):
    """No assignor has this name; the message lists those that are known."""


def java_order(text: str) -> bytes:
    """A sort key: Java's order of strings, by UTF-16 code units. It differs from Python's
    above U+FFFF, and `-10` sorts before `-2` in both."""
    return text.encode("utf-16-be", "surrogatepass")


@dataclass(frozen=True, slots=True)
class AssignmentContext:
    """One member's view of its group (0.8.2: `kafka.consumer.AssignmentContext`).

    - `my_threads`: topic -> this member's thread ids.
    - `partitions`: topic of mine -> its partitions, ascending; empty where there are none. The
      topics stand as the member registered them; round robin breaks ties by that.
    - `threads`: topic of anybody -> the group's thread ids, in Java's string order.
    """

    group: str
    consumer_id: str
    my_threads: Mapping[str, tuple[str, ...]]
    partitions: Mapping[str, tuple[int, ...]]
    threads: Mapping[str, tuple[str, ...]]

    def topic(self, name: str) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """Partitions and threads of a topic of mine. Raises AssignmentError (in 0.8.2 a
        NoSuchElementException) when one is missing."""
        if name not in self.partitions or name not in self.threads:
            known = sorted(self.threads)
            raise AssignmentError(
                f"{self.consumer_id}: group {self.group} shows nobody on topic {name}, only on {known}; "
                "the view is older than the member's own registration"
            )
        return self.partitions[name], self.threads[name]

    def position(self, topic: str, thread: str) -> int:
        """Where a thread of mine stands among the topic's. Raises AssignmentError (in 0.8.2 an
        AssertionError) when it is not there."""
        threads = self.threads[topic]
        found = bisect_left(threads, java_order(thread), key=java_order)
        if threads[found : found + 1] != (thread,):
            raise AssignmentError(
                f"{self.consumer_id}: thread {thread} is not among those of topic {topic} in group {self.group}: "
                f"{list(threads)}"
            )
        return found


@dataclass(frozen=True, slots=True)
class Assignment:
    """A member's partitions: (partition, thread id), by partition. `warnings` is what Kafka logs."""

    owners: tuple[tuple[TopicPartition, str], ...]
    warnings: tuple[str, ...] = ()


class Assignor(Protocol):
    """A rule of dealing out partitions by thread."""

    def __call__(self, context: AssignmentContext, /) -> Assignment:
        """The member's own share. Raises AssignmentError."""
        ...
