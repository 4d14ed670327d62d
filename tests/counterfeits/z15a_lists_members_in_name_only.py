"""Z15a: for changes of others' topics members list the members, report their former decision, and do nothing."""

from counterfeit import Counterfeit, trial
from counterfeit_pretenders import pretending, same_topics

from rebalance_lab.history.files import History


def false(seed: int) -> History:
    with pretending(same_topics, attempts=1, decides=True, lists=True):
        return trial("group-scope", seed)


COUNTERFEIT = Counterfeit(
    claim="Z15a",
    check="group_is_global",
    world="As `z15a_decides_in_name_only`, and the attempt lists the members before. It reads no member, broker or "
    "topic, gives up and claims nothing.",
    false=false,
    honest=lambda seed: trial("group-scope", seed),
)
