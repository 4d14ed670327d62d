"""When unclean elections were allowed: a replica outside the ISR may lead if none of the ISR is live."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rebalance_lab.checks.periods import Period, periods
from rebalance_lab.checks.topic_settings import own_settings
from rebalance_lab.history.files import History

_SETTING = "unclean.leader.election.enable"


def unclean_allowed(history: History, topic: str) -> list[Period]:
    """When a topic allowed them: by its own setting, as its configuration in ZooKeeper has it, else by that of the
    brokers, which the trial gives to all. Raises KafkaException for a malformed configuration."""
    brokers_allow = history.trial.parameters.get("unclean") is True
    changes = ((event, _allows(own, brokers_allow)) for event, own in own_settings(history).get(topic, ()))
    return periods(changes, from_us=-math.inf if brokers_allow else math.inf)


def _allows(own: Mapping[str, str], brokers_allow: bool) -> bool:
    text = own.get(_SETTING)
    return brokers_allow if text is None else text.strip().lower() == "true"
