"""Topics whose replicas brokers have placed, and the brokers and racks that were there: for checks of placement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rebalance_lab.checks.broker_registrations import registered_racks
from rebalance_lab.history.creations import creations
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of, once
from rebalance_lab.wire.cluster import read_assignment
from rebalance_lab.wire.paths import topic_path


@dataclass(frozen=True, slots=True)
class Placed:
    """A topic that brokers have placed. `brokers`: those that were registered, by id. `replicas`: by partition.
    `racks`: the rack of each broker; empty unless all have one, as in Kafka's rack-aware placement."""

    topic: str
    created: Event
    brokers: tuple[int, ...]
    replicas: tuple[tuple[int, ...], ...]
    racks: Mapping[int, str]


@once
def placed_topics(history: History) -> list[Placed]:
    """The topics that brokers have placed while the same brokers were registered, two at least. Raises KafkaException
    for a malformed znode."""
    znodes = {str(each.of("path")): each for each in events_of(history, Kind.CREATED)}
    found = []
    for each in creations(history):
        created = znodes.get(topic_path(each.topic))
        if created is None or each.answered is None or each.error is not None:
            continue
        registered = registered_racks(history, each.asked, each.answered)
        if registered is None or len(registered) < 2:
            continue
        racks = {broker: rack for broker, rack in registered.items() if rack is not None}
        replicas = read_assignment(each.topic, str(created.of("data")).encode()).replicas
        found.append(
            Placed(
                each.topic,
                created,
                tuple(registered),
                tuple(replicas.values()),
                racks if len(racks) == len(registered) else {},
            )
        )
    return found
