"""How the parts of a broker tell what trials record (`rebalance_lab.history.replicas`)."""

from __future__ import annotations

from collections.abc import Callable

from rebalance_lab.assignors import TopicPartition

#: Takes what happens: the name of the event, the partition that it is about, and its detail.
Observe = Callable[[str, TopicPartition | None, dict[str, object]], None]


def unobserved(_event: str, _partition: TopicPartition | None, _detail: dict[str, object]) -> None:
    """For a broker of which nothing is recorded."""
