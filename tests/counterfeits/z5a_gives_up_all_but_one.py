"""Z5a: a member's release stops one short: the last of what it owned it never gives up if it gets it again.

Its claim finds that znode there, made by its own session, and counts it as claimed.
"""

from __future__ import annotations

from unittest.mock import patch

from counterfeit import Counterfeit, trial
from counterfeit_releases import all_but_the_last, left_over

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.files import History
from zkconsumer.claims import Claims, Plan

_take = Claims.take


async def _unless_another_gets_it(claims: Claims, plan: Plan) -> list[TopicPartition]:
    last = left_over(claims)
    for each in last:
        if each not in {wanted for wanted, _ in plan.owners}:
            await claims._delete(each)
    return await _take(claims, plan)


def _false(seed: int) -> History:
    with patch.object(Claims, "release", all_but_the_last), patch.object(Claims, "take", _unless_another_gets_it):
        return trial("group-scope", seed)


def _honest(seed: int) -> History:
    """Every member gets all of its partitions again, and has given each of them up before."""
    return trial("group-scope", seed)


COUNTERFEIT = Counterfeit(
    claim="Z5a",
    check="order_in_rebalance",
    world="Members release all but their last partition; where they get it again, their claim finds their own znode "
    "and counts as won.",
    false=_false,
    honest=_honest,
)
