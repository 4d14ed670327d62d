"""ahead_of_assumed_isr: a leader that waits for a follower only once it knows that it is in the ISR."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.replication.leadership import Leadership
from rebalance_lab.history.files import History

KILLS = {"fault": "kill", "rounds": "8", "messages": "1200", "pause_us": "1000"}


def high_watermark(self: Leadership, current: int, leader_end: int, _now_us: int, *, min_isr: int) -> int:
    if self.is_under(min_isr):
        return current
    return max(current, min([leader_end, *(self.end_offsets[each] for each in self.isr if self.is_follower(each))]))


def honest(seed: int) -> History:
    return trial("committed-data", seed, settings=KILLS)


def false(seed: int) -> History:
    with patch.object(Leadership, "high_watermark", high_watermark):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="ahead_of_assumed_isr",
    world="A leader waits for every replica that it knows to be in sync. So did leaders of Kafka 0.9.0, which wrote "
    "the ISR themselves; but here the controller writes it, and until it answers, the leader goes on without the "
    "follower that it has asked it to add.",
    false=false,
    honest=honest,
)
