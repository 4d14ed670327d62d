"""early_shrink: a leader that notes that a follower has caught up when it joins, and not when it fetches."""

from typing import Any
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.replication.leadership import FollowerState, Leadership
from rebalance_lab.history.files import History

#: The client writes for seconds, one record at a time, so that at each look one may be on its way.
BUSY = {"messages": "1500", "pause_us": "1000", "lag_ms": "1000"}

_with_joined = Leadership.with_joined


def fetched(self: FollowerState, offset: int, leader_end: int, now_us: int) -> None:
    self.end_offset, self.fetched_us = offset, now_us
    self.leader_end_then = max(self.leader_end_then, leader_end)


def with_joined(self: Leadership, follower: int, **leader: Any) -> tuple[int, ...] | None:
    isr = _with_joined(self, follower, **leader)
    if isr is not None:
        self._followers[follower].caught_up_us = self._followers[follower].fetched_us
    return isr


def honest(seed: int) -> History:
    return trial("committed-data", seed, control=True, settings=BUSY)


def false(seed: int) -> History:
    with patch.object(FollowerState, "fetched", fetched), patch.object(Leadership, "with_joined", with_joined):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="early_shrink",
    world="A leader gives each follower its time when a leader epoch begins and when the follower joins, and keeps one "
    "that has the whole log. But it does not note when a follower had that last. Seconds into its leader epoch it "
    "drops a follower that lacks only the record of this moment, and that joins again with its next fetch.",
    false=false,
    honest=honest,
)
