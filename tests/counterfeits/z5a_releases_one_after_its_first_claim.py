"""Z5a: a member releases all but one partition, claims its first, and only then releases that one."""

from __future__ import annotations

from unittest.mock import patch

from counterfeit import Counterfeit, trial
from counterfeit_releases import all_but_the_last, left_over

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.files import History
from zkconsumer.claims import Claims, Plan

_take = Claims.take


async def _then_the_last(claims: Claims, plan: Plan) -> list[TopicPartition]:
    late = left_over(claims)
    first = next(((each, thread) for each, thread in plan.owners if each not in late), None)
    if late and first is not None:
        await claims._create(*first)
    for each in late:
        await claims._delete(each)
    return await _take(claims, plan)


def _false(seed: int) -> History:
    with patch.object(Claims, "release", all_but_the_last), patch.object(Claims, "take", _then_the_last):
        return trial("walkthrough", seed)


def _honest(seed: int) -> History:
    """Conflicts: members delete what they have just claimed, and claim again in the next attempt."""
    return trial("uncontrolled", seed, settings={"rebalance_max_retries": 20})


COUNTERFEIT = Counterfeit(
    claim="Z5a",
    check="order_in_rebalance",
    world="Members release all but one partition, claim their first, and release that one then.",
    false=_false,
    honest=_honest,
)
