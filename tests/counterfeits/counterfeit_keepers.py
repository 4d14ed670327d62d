"""Members that keep their share through a rebalance that would not change it, for counterfeits of Z5a."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from unittest.mock import patch

from counterfeit import trial

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History
from zkconsumer.rebalance import Rebalancer


def walkthrough(seed: int) -> History:
    """Members that give up what they own in each rebalance."""
    return trial("walkthrough", seed)


async def keeps(rebalancer: Rebalancer) -> bool:
    """Whether it owns something, and would own the same after a rebalance."""
    ownership = rebalancer._ownership
    owned: set[TopicPartition] = {each for topic in ownership.topics for each in ownership.of(topic)}
    if not owned:
        return False
    snapshot = await rebalancer._view.snapshot()
    return {each for each, _ in rebalancer._settings.assignor(snapshot.context).owners} == owned


def reporting(report: Callable[[Rebalancer], None]) -> Callable[[int], History]:
    """Members that report such a rebalance by `report`, and do nothing else."""
    synced = Rebalancer.synced

    async def pretended(rebalancer: Rebalancer, by: str) -> None:
        async with rebalancer.lock:
            kept = not rebalancer._flags.shutting_down() and await keeps(rebalancer)
            if kept:
                rebalancer._report.step(Kind.REBALANCE_BEGAN, by=by)
                report(rebalancer)
        if not kept:
            await synced(rebalancer, by)

    def make(seed: int) -> History:
        with patch.object(Rebalancer, "synced", pretended):
            return trial("walkthrough", seed)

    return make


def attempting(attempt: Callable[[Rebalancer], Awaitable[object]]) -> Callable[[int], History]:
    """Members whose attempts of such a rebalance are `attempt`."""
    honest = Rebalancer._attempt

    async def pretended(rebalancer: Rebalancer) -> object:
        return await (attempt if await keeps(rebalancer) else honest)(rebalancer)

    def make(seed: int) -> History:
        with patch.object(Rebalancer, "_attempt", pretended):
            return trial("walkthrough", seed)

    return make
