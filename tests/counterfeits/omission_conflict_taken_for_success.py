"""omission: every rebalance says that it succeeded, and at rest a partition has no owner."""

from dataclasses import replace
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from zkconsumer.claims import Plan
from zkconsumer.rebalance import AttemptFailed, Rebalancer

_TAKE = Rebalancer._take


async def take(self: Rebalancer, plan: Plan) -> AttemptFailed | None:
    failed = await _TAKE(self, plan)
    if failed is None:
        return None
    free = tuple(owner for owner in plan.owners if owner[0] not in failed.conflicts)
    return await _TAKE(self, replace(plan, owners=free))


def false(seed: int) -> History:
    with patch.object(Rebalancer, "_take", take):
        return trial("growth", seed, settings={"fetcher_stop_ms": "200"})


COUNTERFEIT = Counterfeit(
    claim=None,
    check="omission",
    world="A member that finds a partition of its share taken goes without it and reports success; its former "
    "owner gives it up a moment later, and nobody comes back for it.",
    false=false,
    honest=lambda seed: trial("growth", seed, settings={"fetcher_stop_ms": "200"}),
)
