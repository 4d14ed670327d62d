"""The premise of Z16: a member keeps what it won while it tries for the rest, all in one attempt."""

from __future__ import annotations

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.files import History
from zkconsumer.claims import Claims, Plan

_SETTINGS = {"keep": "false"}


async def _take(claims: Claims, plan: Plan) -> list[TopicPartition]:
    """For up to two seconds."""
    conflicts: list[TopicPartition] = []
    for _ in range(20):
        missing = [row for row in plan.owners if row[0] not in claims._won]
        conflicts = [each for each, thread in missing if not await claims._create(each, thread)]
        if not conflicts:
            claims._forget()
            return []
        await claims._client._tasks.sleep(100_000)
    await claims.let_go()
    return conflicts


def _false(seed: int) -> History:
    with patch.object(Claims, "take", _take):
        return trial("deadlock", seed, settings=_SETTINGS)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="kept_claims",
    world="Members give back what they claimed before an attempt ends as failed, as 0.8.2 does. But the attempt goes "
    "on for two seconds after the first conflict, and meanwhile they keep what they have and try for the rest.",
    false=_false,
    honest=lambda seed: trial("deadlock", seed, settings=_SETTINGS),
)
