"""Z15a: members ignore those of other topics, and a timer makes them rebalance."""

import z15a_same_topics_only as same_topics
from counterfeit import Counterfeit
from counterfeit_timers import timers

from rebalance_lab.history.files import History


def false(seed: int) -> History:
    with timers():
        return same_topics.false(seed)


COUNTERFEIT = Counterfeit(
    claim="Z15a",
    check="group_is_global",
    world="As `z15a_same_topics_only`, and a timer makes each member rebalance when it has been idle for 1.5 s: so it "
    "also rebalances soon after a reader of another topic has come.",
    false=false,
    honest=same_topics.COUNTERFEIT.honest,
)
