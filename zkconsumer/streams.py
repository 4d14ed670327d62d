"""Streams and their queues, which fetchers fill and an application reads."""

from __future__ import annotations

from collections.abc import Mapping

from zkconsumer.errors import IllegalArgumentException
from zkconsumer.subscription import Static, Subscription


class Streams:
    """(topic, thread id) -> queue, a number (`topicThreadIdAndQueues` of 0.8.2).

    A subscription by name has a queue for each topic and thread; a filter has `streams` queues that all its topics
    share. Entries are never removed, even if a topic is deleted (a TODO of Kafka's).
    """

    def __init__(self, subscription: Subscription) -> None:
        self._shared = None if isinstance(subscription, Static) else subscription.streams
        self._queues: dict[tuple[str, str], int] = {}
        self._topics: dict[str, None] = {}

    @property
    def topics(self) -> tuple[str, ...]:
        """All topics that ever had a queue, sorted."""
        return tuple(sorted(self._topics))

    def put(self, threads: Mapping[str, tuple[str, ...]]) -> None:
        """Give every thread of topic -> thread ids its queue.

        Raises IllegalArgumentException where the numbers differ.
        """
        pairs = [(topic, thread) for topic in threads for thread in threads[topic]]
        queues = len(pairs) if self._shared is None else self._shared * len(threads)
        if len(pairs) != queues:
            raise IllegalArgumentException(
                f"requirement failed: Mismatch between thread ID count ({len(pairs)}) and queue count ({queues})"
            )
        for index, pair in enumerate(pairs):
            self._queues[pair] = index if self._shared is None else index % self._shared
            self._topics[pair[0]] = None

    def queue(self, topic: str, thread: str) -> int | None:
        """The queue; None if the topic came after the queues were created, so that its messages have none (F11)."""
        return self._queues.get((topic, thread))
