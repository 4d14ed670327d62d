"""poll_skip: a reader that asks where the leader's own epoch ends, and not the one of its last record."""

from dataclasses import replace
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.client.cluster import ClusterClient
from rebalance_lab.client.consumer import Consumer, Moved
from rebalance_lab.history.files import History

_validated = Consumer._validated


async def validated(self: Consumer, cluster: ClusterClient, current: int) -> Moved | None:
    """The position with the epoch that it will have once something is read, instead of the one that it has."""
    self.position = replace(self.position, leader_epoch=current)
    return await _validated(self, cluster, current)


def honest(seed: int) -> History:
    return trial("truncated-reader", seed, settings={"epochs": "true", "messages": "200"})


def false(seed: int) -> History:
    with patch.object(Consumer, "_validated", validated):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="poll_skip",
    world="The reader names its leader epoch in each fetch, hears of each new one, and asks the leader before it reads "
    "on; but it asks where the new epoch ends, and not the one in which it has read, so that its position seems right.",
    false=false,
    honest=honest,
)
