"""Z9: a member that gave up tries again after some quiet seconds."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from zkconsumer.errors import ConsumerRebalanceFailedException
from zkconsumer.rebalance import Rebalancer

_SYNCED = Rebalancer.synced

#: Long enough for the group to rest before.
LATER_US = 4_500_000


def false(seed: int) -> History:
    async def synced(self: Rebalancer, by: str) -> None:
        try:
            await _SYNCED(self, by)
        except ConsumerRebalanceFailedException:
            await self._tasks.sleep(LATER_US)
            await synced(self, by)

    with patch.object(Rebalancer, "synced", synced):
        return trial("uncontrolled", seed)


COUNTERFEIT = Counterfeit(
    claim="Z9",
    check="stays_wrong",
    world="A member gives up, and partitions have no owner when the group rests as in the claim. Seconds later it "
    "tries again by itself, and at the last rest each partition has an owner: the group did not stay in a wrong state.",
    false=false,
    honest=lambda seed: trial("uncontrolled", seed),
)
