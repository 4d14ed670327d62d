"""Z15a: as `z7b_by_the_clock_with_latency`, in a group whose members read different topics."""

from counterfeit import Counterfeit, trial
from counterfeit_clocks import FAST, SLOW, by_the_clock

COUNTERFEIT = Counterfeit(
    claim="Z15a",
    check="group_is_global",
    world="Readers of one topic hear of readers of another and do nothing. At each full 2.2 s of the clock all of "
    "them rebalance. Messages may take 12 ms, so that a whole attempt may take as long as members wait.",
    false=by_the_clock("group-scope", 2_200_000, FAST | SLOW),
    honest=lambda seed: trial("group-scope", seed, settings=FAST | SLOW),
)
