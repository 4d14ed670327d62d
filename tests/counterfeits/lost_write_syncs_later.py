"""lost_write: a broker that acknowledges while the sync is on its way."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.log.log import PartitionLog
from rebalance_lab.history.files import History

SYNCED = {"power_loss": "true", "flush_messages": "1", "kills": "8"}

_flush = PartitionLog.flush


async def flush(self: PartitionLog, end_offset: int | None = None) -> None:
    self._around.tasks.spawn(_flush(self, end_offset), "sync")


def honest(seed: int) -> History:
    return trial("broker-crash", seed, settings=SYNCED)


def false(seed: int) -> History:
    with patch.object(PartitionLog, "flush", flush):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="lost_write",
    world="The broker syncs each record, and a moment later all of them are durable; but it does not wait for it, so "
    "that a loss of power within a few milliseconds takes what was just acknowledged.",
    false=false,
    honest=honest,
)
