"""Members that end a rebalance before its first attempt."""

from __future__ import annotations

from counterfeit import Counterfeit
from counterfeit_keepers import reporting, walkthrough

from rebalance_lab.history.events import Kind
from zkconsumer.rebalance import Rebalancer


def _ended(rebalancer: Rebalancer) -> None:
    rebalancer._report.step(Kind.REBALANCE_ENDED, outcome="ok", attempts=0)


COUNTERFEIT = Counterfeit(
    claim="Z5a",
    check="order_in_rebalance",
    world="A member whose share stays the same ends its rebalance with ok and made no attempt. It keeps everything.",
    false=reporting(_ended),
    honest=walkthrough,
)
