"""Z8: one member deals by another rule, all see one view, and each reports a view of its own."""

import z8_one_view_two_rules as two_rules
from counterfeit import Counterfeit
from counterfeit_forging import decisions

from rebalance_lab.history.files import History


def false(seed: int) -> History:
    return decisions(two_rules.false(seed), lambda event: {"view": f"{event.actor}/{event.n}"})


COUNTERFEIT = Counterfeit(
    claim="Z8",
    check="disagreement",
    world="Members collide on partitions that each believes its own, and no two decisions report the same view; but "
    "all had read the same lists, and one of them has another assignor.",
    false=false,
    honest=two_rules.COUNTERFEIT.honest,
)
