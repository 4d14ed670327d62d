"""early_shrink: a leader that takes the time between two looks for the time that a follower may lag."""

from dataclasses import replace
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.replication.leadership import FollowerState, Lag
from rebalance_lab.history.files import History

#: The link is cut soon after the topic's creation.
EARLY = {"lag_ms": "4000", "away_ms": "8000", "messages": "40"}

_is_caught_up = FollowerState.is_caught_up


def impatient(self: FollowerState, leader_end: int, now_us: int, lag: Lag) -> bool:
    return _is_caught_up(self, leader_end, now_us, replace(lag, time_us=lag.time_us // 2))


def honest(seed: int) -> History:
    return trial("isr-per-partition", seed, settings=EARLY)


def false(seed: int) -> History:
    with patch.object(FollowerState, "is_caught_up", impatient):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="early_shrink",
    world="The leader looks for laggards every half of replica.lag.time.max.ms, gives new followers their time, and "
    "drops one that is cut off; but it compares with the half of that time as well.",
    false=false,
    honest=honest,
)
