"""early_ack: a leader that waits for as many replicas as must be in sync, and not for all that are."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.partition import Partition
from rebalance_lab.history.files import History

_is_committed = Partition.is_committed


def is_committed(self: Partition, offset: int, epoch: int) -> bool:
    leadership = self.leadership
    if leadership is not None:
        others = [each for each in leadership.isr if leadership.end_offsets.get(each, -1) > offset]
        if 1 + len(others) >= leadership.effective_min_isr(self._min_isr):
            return True
    return _is_committed(self, offset, epoch)


def honest(seed: int) -> History:
    return trial("isr-election", seed)


def false(seed: int) -> History:
    with patch.object(Partition, "is_committed", is_committed):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="early_ack",
    world="A leader acknowledges a record once two replicas have it, as min.insync.replicas asks for. The third in "
    "sync gets it a moment later, and only then the high watermark rises. The leader dies and nothing is lost, as the "
    "others are quick; but the one that leads next need not be one of the two.",
    false=false,
    honest=honest,
)
