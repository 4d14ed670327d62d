"""unowned_window: a settling delay of those who read the trial's second topic."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.files import History
from zkconsumer.claims import Claims, Plan

_TAKE = Claims.take


async def _take(self: Claims, plan: Plan) -> list[TopicPartition]:
    if any(place.topic == "b" for place, _ in plan.owners):
        await self._client._tasks.sleep(10_000_000)
    return await _TAKE(self, plan)


def _false(seed: int) -> History:
    with patch.object(Claims, "take", _take):
        return trial("group-scope", seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="unowned_window",
    world="Readers of topic b wait ten seconds between release and claim. The trial's parameter `topic` is a, whose "
    "readers do not wait.",
    false=_false,
    honest=lambda seed: trial("group-scope", seed),
)
