"""ahead_of_isr: a leader that takes what it sends a follower for what the follower has."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.partition import Partition
from rebalance_lab.history.files import History

_fetched = Partition.follower_fetched


def hopeful(self: Partition, follower: int, _offset: int, leader_end: int) -> None:
    """The answer holds all up to the log's end, and surely it arrives."""
    _fetched(self, follower, leader_end, leader_end)


def honest(seed: int) -> History:
    return trial("isr-election", seed, settings={"messages": "60"})


def false(seed: int) -> History:
    with patch.object(Partition, "follower_fetched", hopeful):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="ahead_of_isr",
    world="A leader waits for every replica of the ISR, drops those that are gone, and waits for no other; but "
    "it counts a record as replicated when it sends it, and not when the follower asks for the next.",
    false=false,
    honest=honest,
)
