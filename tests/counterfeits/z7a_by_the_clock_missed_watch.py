"""Z7a: as `z7a_by_the_clock`, for the claim's other check."""

from dataclasses import replace

from z7a_by_the_clock import COUNTERFEIT as BY_THE_CLOCK

COUNTERFEIT = replace(
    BY_THE_CLOCK,
    check="missed_watch",
    world="As `z7a_by_the_clock`: every change is soon followed by a rebalance of each member, and by none that it set "
    "off.",
)
