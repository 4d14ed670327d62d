"""Z7b: when a broker comes or goes, members report a failed attempt and one that succeeded, and do nothing."""

from counterfeit import Counterfeit, trial
from counterfeit_pretenders import members, pretending

from rebalance_lab.history.files import History


def false(seed: int) -> History:
    with pretending(members, attempts=2):
        return trial("herd", seed, settings={"members": "4"})


COUNTERFEIT = Counterfeit(
    claim="Z7b",
    check="broker_change_noticed",
    world="As `z7b_attempts_in_name_only`, and the rebalance has a failed attempt before, which asked nothing "
    "of ZooKeeper: its error is invented.",
    false=false,
    honest=lambda seed: trial("herd", seed, settings={"members": "4"}),
)
