"""Members that say that they find no broker."""

from __future__ import annotations

from counterfeit import Counterfeit
from counterfeit_keepers import attempting, walkthrough

from rebalance_lab.wire.warnings import NO_BROKERS
from zkconsumer.rebalance import Rebalancer


async def _warn(rebalancer: Rebalancer) -> None:
    rebalancer._report.warned(NO_BROKERS)


COUNTERFEIT = Counterfeit(
    claim="Z5a",
    check="order_in_rebalance",
    world="A member whose share stays the same warns that it finds no broker, ends its rebalance with ok, and gives "
    "nothing up. The broker is registered all the time.",
    false=attempting(_warn),
    honest=walkthrough,
)
