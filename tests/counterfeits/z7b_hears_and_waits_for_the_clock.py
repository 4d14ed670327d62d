"""Z7b: members hear of a broker, do nothing about it, and a timer makes them rebalance."""

from counterfeit import Counterfeit, trial
from counterfeit_timers import only_timers

from rebalance_lab.history.files import History


def false(seed: int) -> History:
    with only_timers():
        return trial("herd", seed, settings={"members": "4"})


COUNTERFEIT = Counterfeit(
    claim="Z7b",
    check="broker_change_noticed",
    world="Members record a trigger for every notification, and nothing follows from it. A timer makes each rebalance "
    "when it has been idle for 1.5 s: so every rebalance comes after a trigger.",
    false=false,
    honest=lambda seed: trial("herd", seed, settings={"members": "4"}),
)
