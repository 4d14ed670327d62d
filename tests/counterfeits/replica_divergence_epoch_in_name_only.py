"""replica_divergence: followers of KIP-279 that take the offset of the answer, and not its epoch."""

from typing import Any
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.log.epochs import EpochEnd
from rebalance_lab.broker.replication import fetcher
from rebalance_lab.broker.replication.truncation import Truncation, at_epoch_end
from rebalance_lab.history.files import History

ALONE = {"schedule": "alone", "unclean": "true"}


def by_offset(leaders: EpochEnd, own: EpochEnd, *, compares_epochs: bool, **more: Any) -> Truncation:
    assert compares_epochs
    return at_epoch_end(leaders, own, compares_epochs=False, **more)


def honest(seed: int) -> History:
    return trial("truncation", seed, rules="kip-279", settings={**ALONE, "messages": "400"})


def false(seed: int) -> History:
    with patch.object(fetcher, "at_epoch_end", by_offset):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="replica_divergence",
    world="Followers ask where their latest epoch ended, the answer names the epoch that it is about, and all is in "
    "the formats of KIP-279; but a follower that does not have this epoch cuts at the offset and does not ask again.",
    false=false,
    honest=honest,
)
