"""unowned_window: a settling delay for the partitions that a topic got later."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.files import History
from zkconsumer.claims import Claims, Plan

_TAKE = Claims.take
_FIRST_PARTITIONS = 6


async def _take(self: Claims, plan: Plan) -> list[TopicPartition]:
    """Claims the partitions that were there from the beginning, and waits before it claims the others."""
    if all(place.partition < _FIRST_PARTITIONS for place, _ in plan.owners):
        return await _TAKE(self, plan)
    for place, thread in plan.owners:
        if place.partition < _FIRST_PARTITIONS and place not in self._won and not await self._create(place, thread):
            return await _TAKE(self, plan)
    await self._client._tasks.sleep(10_000_000)
    return await _TAKE(self, plan)


def _false(seed: int) -> History:
    with patch.object(Claims, "take", _take):
        return trial("growth", seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="unowned_window",
    world="A topic of 6 partitions gets more. Who gets one of the new ones waits ten seconds before it claims it. The "
    "trial's parameter `partitions` is 6, and none of these 6 waits.",
    false=_false,
    honest=lambda seed: trial("growth", seed),
)
