"""Z7a: members hear who comes and goes, do nothing about it, and rebalance by the clock."""

from counterfeit import Counterfeit, trial
from counterfeit_clocks import FAST_HERD, by_the_clock

COUNTERFEIT = Counterfeit(
    claim="Z7a",
    check="herd_cost",
    world="Members record that a watch asks for a rebalance, and do nothing. At each full 1.5 s of the clock all of "
    "them rebalance, which is soon after each change: notifications, rebalances, reads and writes are as many as the "
    "formulas say.",
    false=by_the_clock("herd", 1_500_000, FAST_HERD),
    honest=lambda seed: trial("herd", seed, settings=FAST_HERD),
)
