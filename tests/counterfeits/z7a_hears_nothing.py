"""Z7a: members hear of no change, and a timer makes them rebalance."""

from counterfeit import Counterfeit, trial
from counterfeit_counted import counted
from counterfeit_timers import timers

from rebalance_lab.history.files import History


def false(seed: int) -> History:
    with timers():
        return trial("herd", seed, settings={"members": "4"}, plant="ignore-watch")


COUNTERFEIT = Counterfeit(
    claim="Z7a",
    check="missed_watch",
    world="Members watch nothing. A timer makes each rebalance when it has been idle for 1.5 s, so all read the "
    "new list of members soon after each change. Operations are only counted.",
    false=counted(false),
    honest=counted(lambda seed: trial("herd", seed, settings={"members": "4"})),
)
