"""Z7b: when a broker comes or goes, members report their former decision, and do nothing."""

from counterfeit import Counterfeit, trial
from counterfeit_pretenders import members, pretending

from rebalance_lab.history.files import History


def false(seed: int) -> History:
    with pretending(members, attempts=1, decides=True):
        return trial("herd", seed, settings={"members": "4"})


COUNTERFEIT = Counterfeit(
    claim="Z7b",
    check="broker_change_noticed",
    world="As `z7b_attempts_in_name_only`, and the attempt reports the decision of the member's former "
    "rebalance. It reads, gives up and claims nothing.",
    false=false,
    honest=lambda seed: trial("herd", seed, settings={"members": "4"}),
)
