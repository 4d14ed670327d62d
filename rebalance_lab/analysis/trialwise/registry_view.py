"""Which partitions the registry lists for each topic while a history goes by."""

from __future__ import annotations

from dataclasses import dataclass, field

from rebalance_lab.checks.registry_state import partitions_of, topic_of
from rebalance_lab.history.events import Event, Kind


@dataclass(slots=True)
class RegistryView:
    """Feed it a history's CREATED, CHANGED and DELETED, in merge order.

    `partitions`: topic -> partition -> time in µs when its znode first listed it (deleted topics
    stay: their partitions were there to be owned).
    """

    partitions: dict[str, dict[int, int]] = field(default_factory=dict)

    def feed(self, event: Event) -> None:
        topic = topic_of(event)
        if topic is not None and event.kind is not Kind.DELETED:
            known = self.partitions.setdefault(topic, {})
            for number in partitions_of(event):
                known.setdefault(number, event.at_us)
