"""The settings that topics have of their own, as their configurations in ZooKeeper have them."""

from __future__ import annotations

from collections.abc import Mapping

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of, once
from rebalance_lab.wire.cluster import read_configuration
from rebalance_lab.wire.paths import TOPIC_CONFIGS


@once
def own_settings(history: History) -> dict[str, list[tuple[Event, Mapping[str, str]]]]:
    """Of each topic its own settings, by Kafka's names, after each change of its configuration. Raises KafkaException
    for a malformed configuration."""
    found: dict[str, list[tuple[Event, Mapping[str, str]]]] = {}
    for event in events_of(history, Kind.CREATED, Kind.CHANGED, Kind.DELETED):
        path = str(event.of("path"))
        folder, _, topic = path.rpartition("/")
        if folder == TOPIC_CONFIGS:
            settings = {} if event.kind is Kind.DELETED else read_configuration(path, str(event.of("data")).encode())
            found.setdefault(topic, []).append((event, settings))
    return found
