"""Z15a: members report an attempt for every change in the group, and carry out only those of their topics."""

from counterfeit import Counterfeit, trial
from counterfeit_pretenders import pretending, same_topics

from rebalance_lab.history.files import History


def false(seed: int) -> History:
    with pretending(same_topics, attempts=1):
        return trial("group-scope", seed)


COUNTERFEIT = Counterfeit(
    claim="Z15a",
    check="group_is_global",
    world="As `z15a_rebalances_in_name_only`, and the rebalance has an attempt that succeeded. The attempt decides "
    "nothing.",
    false=false,
    honest=lambda seed: trial("group-scope", seed),
)
