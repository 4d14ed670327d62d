"""Z15a: members report a rebalance for every change in the group, and carry out only those of their topics."""

from counterfeit import Counterfeit, trial
from counterfeit_pretenders import pretending, same_topics

from rebalance_lab.history.files import History


def false(seed: int) -> History:
    with pretending(same_topics, attempts=0):
        return trial("group-scope", seed)


COUNTERFEIT = Counterfeit(
    claim="Z15a",
    check="group_is_global",
    world="For each change in the group every member reports that a rebalance began and succeeded; but where none of "
    "its own topics is concerned it makes no attempt, gives nothing up and goes on working.",
    false=false,
    honest=lambda seed: trial("group-scope", seed),
)
