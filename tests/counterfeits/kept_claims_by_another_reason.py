"""The premise of Z16: a member that keeps its claims while it waits, and calls its conflicts errors."""

from typing import Any
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from rebalance_lab.world.errors import NodeExists
from zkconsumer.claims import Claims

_TAKE = Claims.take


async def _take(claims: Claims, plan: Any) -> list[Any]:
    if "host-m3" not in plan.owners[0][1]:
        return await _TAKE(claims, plan)
    lost = []
    for each, thread in plan.owners:
        if each not in claims._won and not await claims._create(each, thread):
            lost.append(each)
    if lost:
        claims._held = plan  # the next attempt goes on with it
        raise NodeExists("create", f"/consumers/g1/owners/{lost[0].topic}/{lost[0].partition}")
    claims._forget()
    return []


def false(seed: int) -> History:
    with patch.object(Claims, "take", _take):
        return trial("deadlock", seed, rules="shipped", settings={"keep": "false"})


COUNTERFEIT = Counterfeit(
    claim=None,
    check="kept_claims",
    world="Members were told to keep nothing. One of them keeps what it claimed while it waits to try again, and "
    "reports that its attempts failed on an error, not on a conflict.",
    false=false,
    honest=lambda seed: trial("deadlock", seed, rules="shipped", settings={"keep": "false"}),
)
