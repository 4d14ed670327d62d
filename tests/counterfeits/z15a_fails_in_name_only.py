"""Z15a: for changes of others' topics members report a failed attempt and one that succeeded, and do nothing."""

from counterfeit import Counterfeit, trial
from counterfeit_pretenders import pretending, same_topics

from rebalance_lab.history.files import History


def false(seed: int) -> History:
    with pretending(same_topics, attempts=2):
        return trial("group-scope", seed)


COUNTERFEIT = Counterfeit(
    claim="Z15a",
    check="group_is_global",
    world="As `z15a_attempts_in_name_only`, and the rebalance has a failed attempt before, which asked nothing "
    "of ZooKeeper: its error is invented.",
    false=false,
    honest=lambda seed: trial("group-scope", seed),
)
