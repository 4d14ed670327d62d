"""changed_read: a leader that lets consumers read up to the end of its log."""

from unittest.mock import PropertyMock, patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.apis.fetch import _Reader
from rebalance_lab.broker.log.results import UpTo
from rebalance_lab.history.files import History
from rebalance_lab.subjects.replication.subject import ReplicaOptions

KILLS = {"reader": "true", "fault": "kill", "rounds": "8", "messages": "40"}

_config = ReplicaOptions.config


def slow(self, plan, actor):
    """Followers whose fetches wait for more than there is, so that each record is committed half a second late."""
    object.__setattr__(self, "more", {**self.more, "replica_fetch_min_bytes": 1_000_000})
    return _config(self, plan, actor)


def honest(seed: int) -> History:
    with patch.object(ReplicaOptions, "config", slow):
        return trial("committed-data", seed, settings=KILLS)


def false(seed: int) -> History:
    with patch.object(_Reader, "up_to", new_callable=PropertyMock, return_value=UpTo.LOG_END):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="changed_read",
    world="Whatever was acknowledged stays, and the replicas are alike; but leaders let consumers read what their "
    "followers do not have yet. If the leader dies, its successor writes the same number again in its own epoch.",
    false=false,
    honest=honest,
)
