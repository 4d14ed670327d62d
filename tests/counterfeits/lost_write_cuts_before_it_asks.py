"""lost_write: followers of KIP-101 that cut their logs at the high watermark while the leader does not answer."""

from collections.abc import Sequence
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.replication.fetcher import Following, ReplicaFetcher
from rebalance_lab.history.files import History

_truncate = ReplicaFetcher._truncate


async def cautious(self: ReplicaFetcher, them: Sequence[Following]) -> None:
    """What is above the high watermark may not be the leader's: so drop it, and ask about the rest."""
    for each in them:
        await each.follower.truncate(each.follower.log.high_watermark, each.leader_epoch)
    await _truncate(self, them)


def honest(seed: int) -> History:
    return trial("truncation", seed, rules="kip-101")


def false(seed: int) -> History:
    with patch.object(ReplicaFetcher, "_truncate", cautious):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="lost_write",
    world="Followers ask the new leader where their latest epoch ended, as KIP-101 says, and fetch again what they "
    "lack; but before they ask they drop what is above their high watermark, and this leader cannot be reached.",
    false=false,
    honest=honest,
)
