"""Followers that fetch slowly, and a reader that reads along beside them."""

from typing import Any
from unittest.mock import patch

from counterfeit import trial

from rebalance_lab.broker.calls import BrokerConfig
from rebalance_lab.history.files import History
from rebalance_lab.subjects.replication.subject import ReplicaOptions
from rebalance_lab.trials.plan import Plan

KILLS = {"reader": "true", "fault": "kill", "rounds": "14", "messages": "60"}

_config = ReplicaOptions.config


def _slow(self: ReplicaOptions, plan: Plan, actor: str) -> BrokerConfig:
    """Fetches wait for more than there is, so that each record is committed half a second late, and the followers hear
    of that another half second later."""
    more: dict[str, Any] = {**self.more, "replica_fetch_min_bytes": 1_000_000}
    object.__setattr__(self, "more", more)
    return _config(self, plan, actor)


def kills_beside_slow_followers(seed: int) -> History:
    """`committed-data` with a reader, in which brokers are killed."""
    with patch.object(ReplicaOptions, "config", _slow):
        return trial("committed-data", seed, settings=KILLS)
