"""early_shrink: a leader that counts what a follower lacks, and knows the end of its log from the last look."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.replication.leadership import Leadership
from rebalance_lab.history.files import History

#: A follower may lack a whole burst.
ALLOWED = {"lag_messages": "5"}

_without_laggards = Leadership.without_laggards


def from_memory(self: Leadership, leader_end: int, now_us: int) -> tuple[int, ...] | None:
    known = dict(self.end_offsets)
    remembered = vars(self).setdefault("at_the_last_look", known)
    for broker, follower in self._followers.items():
        follower.end_offset = remembered[broker]
    kept = _without_laggards(self, leader_end, now_us)
    for broker, follower in self._followers.items():
        follower.end_offset = known[broker]
    vars(self)["at_the_last_look"] = known
    return kept


def honest(seed: int) -> History:
    return trial("message-lag", seed, settings=ALLOWED)


def false(seed: int) -> History:
    with patch.object(Leadership, "without_laggards", from_memory):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="early_shrink",
    world="The leader counts what a follower lacks, and drops one that lacks more than replica.lag.max.messages, as it "
    "is told to; but it goes by where the follower's log ended at the look before, and the follower has fetched since.",
    false=false,
    honest=honest,
)
