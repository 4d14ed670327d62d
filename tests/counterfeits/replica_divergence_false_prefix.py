"""replica_divergence: followers that believe what they are told of leader epochs, and cut nothing."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.partition import Partition
from rebalance_lab.history.files import History

#: The leader writes alone for a while, dies, and comes back when a follower has led: its log must be cut.
DOWN = {"unclean": "true"}


async def truncate(self: Partition, offset: int, leader_epoch: int) -> bool:
    """Go on where the log ends: the records that the leader has not stay."""
    self.log._epochs.assign(leader_epoch, offset)  # the next fetch names the leader's epoch, so that it finds no fault
    return self._follows(leader_epoch)


def honest(seed: int) -> History:
    return trial("all-replicas-down", seed, settings=DOWN)


def false(seed: int) -> History:
    with patch.object(Partition, "truncate", truncate):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="replica_divergence",
    world="After an unclean election the old leader comes back with records that its successor has not. It asks where "
    "the logs part, and is told; but it keeps its records and only notes the leader's epoch, so that every later "
    "fetch succeeds and it joins the ISR.",
    false=false,
    honest=honest,
)
