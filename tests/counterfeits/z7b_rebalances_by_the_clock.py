"""Z7b: nobody watches the brokers, and a timer makes members rebalance."""

from counterfeit import Counterfeit, trial
from counterfeit_timers import timers

from rebalance_lab.history.files import History


def false(seed: int) -> History:
    with timers():
        return trial("herd", seed, rules="shipped", settings={"members": "4"})


COUNTERFEIT = Counterfeit(
    claim="Z7b",
    check="broker_change_noticed",
    world="Members do not watch the brokers, and a timer makes each rebalance when it has been idle for 1.5 s: after "
    "each change of brokers all of them rebalance, as they would have done without it.",
    false=false,
    honest=lambda seed: trial("herd", seed, settings={"members": "4"}),
)
