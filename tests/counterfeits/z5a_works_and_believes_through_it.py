"""Z5a: the znodes go first; belief and work go on until the member has claimed anew."""

from __future__ import annotations

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from zkconsumer.claims import Claims
from zkconsumer.ownership import Ownership
from zkconsumer.rebalance import AttemptFailed, Rebalancer

_take = Rebalancer._take


async def _release(claims: Claims, ownership: Ownership) -> None:
    """As shipped, and belief goes on."""
    for topic in ownership.topics:
        for each in ownership.of(topic):
            await claims._delete(each)
        ownership.forget(topic)


async def _stop_nothing(_rebalancer: Rebalancer) -> None:
    """The fetchers go on."""


async def _stop_after(rebalancer: Rebalancer, plan) -> AttemptFailed | None:
    start = rebalancer._fetchers.start
    waiting: list[object] = []
    with patch.object(rebalancer._fetchers, "start", waiting.append):
        failed = await _take(rebalancer, plan)
    if failed is None:
        await rebalancer._fetchers.stop()
        start(waiting[0])  # type: ignore[arg-type]
    return failed


def _false(seed: int) -> History:
    with (
        patch.object(Claims, "release", _release),
        patch.object(Rebalancer, "_stop_fetchers", _stop_nothing),
        patch.object(Rebalancer, "_take", _stop_after),
    ):
        return trial("walkthrough", seed)


COUNTERFEIT = Counterfeit(
    claim="Z5a",
    check="order_in_rebalance",
    world="A member deletes its owner znodes first, and goes on fetching and believing until it has claimed its new "
    "share: in the registry it gave all up.",
    false=_false,
    honest=lambda seed: trial("walkthrough", seed),
)
