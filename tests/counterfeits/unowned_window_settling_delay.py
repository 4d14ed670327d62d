"""unowned_window: a rebalance that succeeds, but leaves partitions alone for too long meanwhile."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.files import History
from zkconsumer.claims import Claims, Plan

_TAKE = Claims.take


async def take(self: Claims, plan: Plan) -> list[TopicPartition]:
    await self._client._tasks.sleep(10_000_000)
    return await _TAKE(self, plan)


def false(seed: int) -> History:
    with patch.object(Claims, "take", take):
        return trial("leave", seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="unowned_window",
    world="Members wait ten seconds between release and claim, so that the group may settle, as later versions "
    "do: every rebalance succeeds and every rest finds all partitions owned, but for ten seconds nobody owned any.",
    false=false,
    honest=lambda seed: trial("leave", seed),
)
