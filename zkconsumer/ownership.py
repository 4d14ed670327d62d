"""The member's in-memory registry (`topicRegistry` in 0.8.2), and the belief it stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter

from rebalance_lab.assignors import TopicPartition
from zkconsumer.report import Report


class Ownership:
    """What the member believes that it owns.

    Belief begins when the registry is swapped after a successful claim. It ends before the first release is sent, or
    when the new-session handler clears the registry, whichever comes first. The registry's entries outlive belief while
    their znodes are being deleted.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._entries: dict[str, tuple[TopicPartition, ...]] = {}
        self._believed: tuple[TopicPartition, ...] = ()

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics in the registry."""
        return tuple(self._entries)

    def of(self, topic: str) -> tuple[TopicPartition, ...]:
        """The topic's partitions in the registry; none after it was cleared."""
        return self._entries.get(topic, ())

    def swap(self, owners: Sequence[tuple[TopicPartition, str]], offsets: Mapping[TopicPartition, int]) -> None:
        """A claim succeeded: this is the registry from now on. `owners`: (partition, thread) in
        order; `offsets`: where each partition starts, -1 where none is stored."""
        self.disbelieve()
        self._believed = tuple(each for each, _ in owners)
        self._entries = {topic: tuple(group) for topic, group in groupby(self._believed, key=attrgetter("topic"))}
        for each, thread in owners:
            self._report.owned(each, thread=thread, offset=offsets[each])

    def disbelieve(self) -> None:
        """Belief ends; the entries stay until their znodes are deleted."""
        believed, self._believed = self._believed, ()
        for each in believed:
            self._report.disowned(each)

    def forget(self, topic: str) -> None:
        """The topic's znodes are deleted: take it out of the registry."""
        self._entries.pop(topic, None)

    def clear(self) -> None:
        """Forget everything without deleting any znode: the session that owned them is gone."""
        self.disbelieve()
        self._entries = {}
