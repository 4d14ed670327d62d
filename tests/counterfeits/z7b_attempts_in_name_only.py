"""Z7b: when a broker comes or goes, members report a rebalance that they do not carry out."""

from counterfeit import Counterfeit, trial
from counterfeit_pretenders import members, pretending

from rebalance_lab.history.files import History


def false(seed: int) -> History:
    with pretending(members, attempts=1):
        return trial("herd", seed, settings={"members": "4"})


COUNTERFEIT = Counterfeit(
    claim="Z7b",
    check="broker_change_noticed",
    world="When a broker comes or goes, every member sees that the list of members is the same. It reports a rebalance "
    "with one attempt that succeeded, and gives up, decides and claims nothing.",
    false=false,
    honest=lambda seed: trial("herd", seed, settings={"members": "4"}),
)
