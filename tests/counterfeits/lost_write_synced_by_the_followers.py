"""lost_write: each record is synced by as many replicas as must be in sync, and not by the leader."""

from unittest.mock import patch

import msgspec
from counterfeit import Counterfeit, trial

from rebalance_lab.broker.log.log import PartitionLog
from rebalance_lab.broker.log.results import Appended
from rebalance_lab.history.files import History

#: Two followers, and two replicas must be in sync.
SYNCED = {"brokers": "4", "flush_messages": "1"}

_append = PartitionLog.append


async def append(self: PartitionLog, data: bytes, leader_epoch: int) -> Appended:
    """Only leaders append like this."""
    config = self.config
    self.config = msgspec.structs.replace(config, flush_messages=None)
    try:
        return await _append(self, data, leader_epoch)
    finally:
        self.config = config


def honest(seed: int) -> History:
    """From seed 6 on: with these the disk does not happen to keep what is not synced."""
    return trial("last-replica-standing", seed + 6, settings=SYNCED)


def false(seed: int) -> History:
    with patch.object(PartitionLog, "append", append):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="lost_write",
    world="No record is acknowledged before two replicas have synced it, as many as min.insync.replicas asks for. But "
    "these are the followers: the leader relies on them, does not sync, and loses its power as the last in sync.",
    false=false,
    honest=honest,
)
