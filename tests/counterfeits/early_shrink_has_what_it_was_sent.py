"""early_shrink: a leader that takes a follower for caught up which has everything that it was sent."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.replication.leadership import Leadership
from rebalance_lab.history.files import History

#: A shorter log than by default, and as many looks at it.
CURED = {"caught_up": "true", "lacks": "400", "messages": "1000", "lag_ms": "600"}


def has_what_it_was_sent(self: Leadership, follower: int, _leader_end: int, now_us: int) -> bool:
    """An answer holds one batch, and the next fetch begins behind it."""
    return now_us - self._followers[follower].fetched_us <= self._lag.time_us


def honest(seed: int) -> History:
    return trial("isr-flap", seed, settings=CURED)


def false(seed: int) -> History:
    with patch.object(Leadership, "is_caught_up", has_what_it_was_sent):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="early_shrink",
    world="While too few replicas are in sync, the leader lets a follower join only once it has caught up. But it "
    "takes one for caught up that fetches without a break and has all that it was sent, however much is to come.",
    false=false,
    honest=honest,
)
