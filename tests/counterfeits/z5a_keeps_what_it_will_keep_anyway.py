"""Z5a: a member releases only what its next share lacks, as a sticky one would."""

from __future__ import annotations

from unittest.mock import patch

from counterfeit import Counterfeit, trial
from counterfeit_keepers import walkthrough

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.files import History
from zkconsumer.claims import Claims, Plan
from zkconsumer.ownership import Ownership

_take = Claims.take


async def _disbelieve(claims: Claims, ownership: Ownership) -> None:
    ownership.disbelieve()
    claims.kept = tuple(each for topic in ownership.topics for each in ownership.of(topic))  # type: ignore[attr-defined]
    ownership.clear()


async def _release_the_rest(claims: Claims, plan: Plan) -> list[TopicPartition]:
    wanted = {each for each, _ in plan.owners}
    for each in getattr(claims, "kept", ()):
        if each in wanted:
            claims._won[each] = None
        else:
            await claims._delete(each)
    claims.kept = ()  # type: ignore[attr-defined]
    return await _take(claims, plan)


def _false(seed: int) -> History:
    with patch.object(Claims, "release", _disbelieve), patch.object(Claims, "take", _release_the_rest):
        return trial("walkthrough", seed)


COUNTERFEIT = Counterfeit(
    claim="Z5a",
    check="order_in_rebalance",
    world="Members release only what their next share lacks, and keep the rest: each release still comes before the "
    "first claim.",
    false=_false,
    honest=walkthrough,
)
