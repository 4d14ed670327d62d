"""leader_completeness: a leader that takes followers which have not fetched yet for followers without records."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.partition import Partition
from rebalance_lab.broker.replication.leadership import UNKNOWN_OFFSET, Leadership
from rebalance_lab.history.files import History

_advance = Partition._advance


def advance(self: Partition, leadership: Leadership) -> None:
    start, known = self.log.start_offset, leadership.end_offsets
    unknown = any(known.get(each) == UNKNOWN_OFFSET for each in leadership.isr)
    if unknown and self.log.high_watermark > start:
        self.log.high_watermark = start
        self._observe("committed", offset=start, leader_epoch=self.leader_epoch)
    _advance(self, leadership)


def honest(seed: int) -> History:
    return trial("isr-election", seed)


def false(seed: int) -> History:
    with patch.object(Partition, "_advance", advance):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="leader_completeness",
    world="A new leader has every record, and commits what its followers have. One that has not fetched from it yet "
    "counts as one that has nothing, so that the high watermark falls to the beginning of the log, once. From then on "
    "it only rises, and is right as soon as they have fetched; meanwhile no consumer can read what was committed.",
    false=false,
    honest=honest,
)
