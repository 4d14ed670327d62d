"""Members that call a rebalance skipped."""

from __future__ import annotations

from counterfeit import Counterfeit
from counterfeit_keepers import reporting, walkthrough

from rebalance_lab.history.events import Kind
from zkconsumer.rebalance import Rebalancer


def _skipped(rebalancer: Rebalancer) -> None:
    rebalancer._report.step(Kind.ATTEMPT_BEGAN, attempt=0)
    rebalancer._report.step(Kind.REBALANCE_ENDED, outcome="skipped", attempts=1)


COUNTERFEIT = Counterfeit(
    claim="Z5a",
    check="order_in_rebalance",
    world="A member whose share stays the same ends its rebalance as skipped, and keeps everything.",
    false=reporting(_skipped),
    honest=walkthrough,
)
