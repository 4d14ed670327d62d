"""duplicate: a log that writes the batch which begins a segment twice."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.log.log import PartitionLog
from rebalance_lab.broker.log.results import Appended
from rebalance_lab.history.files import History

_append = PartitionLog.append


async def append(self: PartitionLog, data: bytes, leader_epoch: int) -> Appended:
    segments = len(self.base_offsets)
    appended = await _append(self, data, leader_epoch)
    if len(self.base_offsets) > segments:
        await _append(self, data, leader_epoch)
    return appended


def honest(seed: int) -> History:
    return trial("broker-crash", seed)


def false(seed: int) -> History:
    with patch.object(PartitionLog, "append", append):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="duplicate",
    world="The log writes a batch, finds the segment full, begins the next one, and writes the batch there, too. "
    "Nothing is lost, the acknowledged offset has the record, and a retry after a crash repeats some record anyway.",
    false=false,
    honest=honest,
)
