"""Z7b: members rebalance by the clock, sooner after they heard of a broker than an attempt may take."""

from counterfeit import Counterfeit, trial
from counterfeit_clocks import SLOW, SLOW_HERD, by_the_clock

COUNTERFEIT = Counterfeit(
    claim="Z7b",
    check="broker_change_noticed",
    world="Members hear of a broker and do nothing. At each full 2.2 s of the clock all of them rebalance. Messages "
    "may take 12 ms, so that a whole attempt may take as long as the clock makes members wait.",
    false=by_the_clock("herd", 2_200_000, SLOW_HERD | SLOW),
    honest=lambda seed: trial("herd", seed, settings=SLOW_HERD | SLOW),
)
