"""Z15a: members hear of a reader of another topic, do nothing about it, and a timer makes them rebalance."""

from counterfeit import Counterfeit, trial
from counterfeit_timers import only_timers

from rebalance_lab.history.files import History


def false(seed: int) -> History:
    with only_timers(2_600_000):
        return trial("group-scope", seed)


COUNTERFEIT = Counterfeit(
    claim="Z15a",
    check="group_is_global",
    world="As `z7b_hears_and_waits_for_the_clock`, with a timer of 2.6 s, so that the group rests between changes.",
    false=false,
    honest=lambda seed: trial("group-scope", seed),
)
