"""changed_read: a leader that lets consumers read up to the end of its log."""

from unittest.mock import PropertyMock, patch

from counterfeit import Counterfeit
from counterfeit_followers import kills_beside_slow_followers

from rebalance_lab.broker.apis.fetch import _Reader
from rebalance_lab.broker.log.results import UpTo
from rebalance_lab.history.files import History


def false(seed: int) -> History:
    with patch.object(_Reader, "up_to", new_callable=PropertyMock, return_value=UpTo.LOG_END):
        return kills_beside_slow_followers(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="changed_read",
    world="Whatever was acknowledged stays, and the replicas are alike; but leaders let consumers read what their "
    "followers do not have yet. If the leader dies, its successor writes the same number again in its own epoch.",
    false=false,
    honest=kills_beside_slow_followers,
)
