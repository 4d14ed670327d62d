"""Z5a: a member releases all but one partition, claims its first, and only then releases that one."""

from __future__ import annotations

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.files import History
from zkconsumer.claims import Claims, Plan
from zkconsumer.ownership import Ownership

_take = Claims.take


async def _all_but_the_last(claims: Claims, ownership: Ownership) -> None:
    ownership.disbelieve()
    owned = [each for topic in ownership.topics for each in ownership.of(topic)]
    for each in owned[:-1]:
        await claims._delete(each)
    claims.late = owned[-1:]  # type: ignore[attr-defined]
    ownership.clear()


async def _then_the_last(claims: Claims, plan: Plan) -> list[TopicPartition]:
    late, claims.late = getattr(claims, "late", []), []  # type: ignore[attr-defined]
    first = next(((each, thread) for each, thread in plan.owners if each not in late), None)
    if late and first is not None:
        await claims._create(*first)
    for each in late:
        await claims._delete(each)
    return await _take(claims, plan)


def _false(seed: int) -> History:
    with patch.object(Claims, "release", _all_but_the_last), patch.object(Claims, "take", _then_the_last):
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
