"""Z6: a member registers and watches, and a timer starts its first rebalance."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from zkconsumer.rebalance import Rebalancer

_SYNCED = Rebalancer.synced


async def synced(self: Rebalancer, by: str) -> None:
    if by == "create":
        await self._tasks.sleep(2_500_000)
    await _SYNCED(self, by)


def false(seed: int) -> History:
    with patch.object(Rebalancer, "synced", synced):
        return trial("walkthrough", seed)


COUNTERFEIT = Counterfeit(
    claim="Z6",
    check="startup_order",
    world="A member registers, sets its watches in the right order, and then waits. A timer of 2.5 s starts its first "
    "rebalance, unless a watch did so before.",
    false=false,
    honest=lambda seed: trial("walkthrough", seed),
)
