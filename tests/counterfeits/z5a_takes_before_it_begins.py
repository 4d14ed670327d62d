"""Members that claim before they begin the rebalance in which they give up what they have."""

from __future__ import annotations

from unittest.mock import patch

from counterfeit import Counterfeit, trial
from counterfeit_keepers import walkthrough

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.files import History
from zkconsumer.claims import Claims
from zkconsumer.ownership import Ownership
from zkconsumer.rebalance import Rebalancer


def false(seed: int) -> History:
    synced, release = Rebalancer.synced, Claims.release
    taken: dict[Claims, list[TopicPartition]] = {}

    async def takes(rebalancer: Rebalancer, by: str) -> None:
        claims, ownership = rebalancer._claims, rebalancer._ownership
        async with rebalancer.lock:
            had = {each for topic in ownership.topics for each in ownership.of(topic)}
            if had and by == "watcher":
                snapshot = await rebalancer._view.snapshot()
                for each, thread in rebalancer._settings.assignor(snapshot.context).owners:
                    if each not in had and await claims._create(each, thread):
                        taken.setdefault(claims, []).append(each)
                claims._forget()
        await synced(rebalancer, by)

    async def releases(claims: Claims, ownership: Ownership) -> None:
        await release(claims, ownership)
        for each in taken.pop(claims, []):
            await claims._delete(each)

    with patch.object(Rebalancer, "synced", takes), patch.object(Claims, "release", releases):
        return trial("walkthrough", seed)


COUNTERFEIT = Counterfeit(
    claim="Z5a",
    check="order_in_rebalance",
    world="A member that hears of a change first takes what is free of its new share. Only then it begins the "
    "rebalance that it reports, in which it gives everything up and takes it again.",
    false=false,
    honest=walkthrough,
)
