"""lost_write: a disk that says that it has synced a segment, and has not."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from rebalance_lab.kernel import Future
from rebalance_lab.world.simulated.storage import SimulatedFile

SYNCED = {"power_loss": "true", "flush_messages": "1"}

_sync = SimulatedFile.sync


def sync(self: SimulatedFile) -> Future[None]:
    if self.path.endswith(".log"):
        return self.truncate(self.size)  # takes its turn and time, and changes nothing
    return _sync(self)


def honest(seed: int) -> History:
    """From seed 1 on: with seed 0 one loss of power takes nothing, and so proves nothing."""
    return trial("broker-crash", seed + 1, settings=SYNCED)


def false(seed: int) -> History:
    with patch.object(SimulatedFile, "sync", sync):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="lost_write",
    world="The broker syncs each record before it acknowledges it, and reads back all that it wrote as long as the "
    "power stays on; but the disk only confirms each sync of a segment, and keeps it in its cache.",
    false=false,
    honest=honest,
)
