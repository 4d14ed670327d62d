"""Z5a: a member whose share stays the same keeps it, and reports that its rebalance ended as it is shutting down."""

from __future__ import annotations

from counterfeit import Counterfeit
from counterfeit_keepers import reporting, walkthrough

from rebalance_lab.history.events import Kind
from zkconsumer.rebalance import Rebalancer


def _shut_down(rebalancer: Rebalancer) -> None:
    rebalancer._report.step(Kind.REBALANCE_ENDED, outcome="shutdown", attempts=0)


COUNTERFEIT = Counterfeit(
    claim="Z5a",
    check="order_in_rebalance",
    world="A member whose share stays the same gives up nothing, and reports that a shutdown ended its rebalance. It "
    "does not shut down: it keeps its share, and works on.",
    false=reporting(_shut_down),
    honest=walkthrough,
)
