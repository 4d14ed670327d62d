"""Z5a: a rebalance in which the member finds its share unchanged ends before it decides, and gives nothing up."""

from __future__ import annotations

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from zkconsumer.rebalance import AttemptFailed, Rebalancer

_attempt = Rebalancer._attempt


async def _unless_unchanged(rebalancer: Rebalancer) -> AttemptFailed | None:
    ownership, settings = rebalancer._ownership, rebalancer._settings
    owned = {each for topic in ownership.topics for each in ownership.of(topic)}
    if owned:
        await rebalancer._view.cluster()
        await rebalancer._view.threads(settings.consumer_id)
        snapshot = await rebalancer._view.snapshot()
        if {each for each, _ in settings.assignor(snapshot.context).owners} == owned:
            return None
    return await _attempt(rebalancer)


def _false(seed: int) -> History:
    with patch.object(Rebalancer, "_attempt", _unless_unchanged):
        return trial("walkthrough", seed)


COUNTERFEIT = Counterfeit(
    claim="Z5a",
    check="order_in_rebalance",
    world="A member whose share stays the same ends the rebalance with success before it decides, so that no DECIDED "
    "shows what it did: it keeps everything, as a sticky assignor would.",
    false=_false,
    honest=lambda seed: trial("walkthrough", seed),
)
