"""When unclean elections were allowed: a replica outside the ISR may lead if none of the ISR is live."""

from __future__ import annotations

import math

from rebalance_lab.checks.periods import Period, periods
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of, once
from rebalance_lab.wire.cluster import read_configuration
from rebalance_lab.wire.paths import TOPIC_CONFIGS

_SETTING = "unclean.leader.election.enable"


def unclean_allowed(history: History, topic: str) -> list[Period]:
    """When a topic allowed them: by its own setting, as its configuration in ZooKeeper has it, else by that of the
    brokers, which the trial gives to all. Raises KafkaException for a malformed configuration."""
    brokers_allow = history.trial.parameters.get("unclean") is True
    changes = ((event, brokers_allow if own is None else own) for event, own in _own_settings(history).get(topic, ()))
    return periods(changes, from_us=-math.inf if brokers_allow else math.inf)


@once
def _own_settings(history: History) -> dict[str, list[tuple[Event, bool | None]]]:
    """Of each topic its own setting after each change of its configuration; None if it has none."""
    found: dict[str, list[tuple[Event, bool | None]]] = {}
    for event in events_of(history, Kind.CREATED, Kind.CHANGED, Kind.DELETED):
        path = str(event.of("path"))
        folder, _, topic = path.rpartition("/")
        if folder == TOPIC_CONFIGS:
            settings = {} if event.kind is Kind.DELETED else read_configuration(path, str(event.of("data")).encode())
            text = settings.get(_SETTING)
            found.setdefault(topic, []).append((event, None if text is None else text.strip().lower() == "true"))
    return found
