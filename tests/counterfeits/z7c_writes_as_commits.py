"""Z7c: writes that pass for commits of offsets."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.files import History
from rebalance_lab.world.errors import NodeExists
from zkconsumer.claims import Claims, Plan

_TAKE = Claims.take
TIMES = 20


async def take(self: Claims, plan: Plan) -> list[TopicPartition]:
    conflicts = await _TAKE(self, plan)
    for _ in range(TIMES):
        try:
            await self._client.create_persistent(f"/consumers/{self._group}/offsets")
        except NodeExists:
            continue
    return conflicts


def herd(seed: int) -> History:
    return trial("herd", seed, rules="shipped", settings={"members": "4"})


def false(seed: int) -> History:
    with patch.object(Claims, "take", take):
        return herd(seed)


COUNTERFEIT = Counterfeit(
    claim="Z7c",
    check="herd_cost",
    world="In each attempt every member makes sure 20 times that /consumers/G/offsets is there: far more than 3P "
    "writes, which look like commits of offsets.",
    false=false,
    honest=herd,
)
