"""Z9: a group in which a member gives up and that stays in no wrong state."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from zkconsumer.errors import ConsumerRebalanceFailedException
from zkconsumer.rebalance import Rebalancer

_SYNCED = Rebalancer.synced


def false(seed: int) -> History:
    async def synced(self: Rebalancer, by: str) -> None:
        try:
            await _SYNCED(self, by)
        except ConsumerRebalanceFailedException:
            await synced(self, by)

    with patch.object(Rebalancer, "synced", synced):
        return trial("uncontrolled", seed)


COUNTERFEIT = Counterfeit(
    claim="Z9",
    check="stays_wrong",
    world="A member gives up after its last attempt, as in the claim, but soon rebalances once more by itself: each of "
    "its partitions has an owner when the group rests.",
    false=false,
    honest=lambda seed: trial("uncontrolled", seed),
)
