"""duplicate: a broker that forgets the sequences of idempotent producers when it dies."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.log.log import PartitionLog
from rebalance_lab.broker.log.opening import _Opening
from rebalance_lab.history.files import History

#: A broker that syncs each record is mostly killed while it does so: the record is there, and nobody was told.
SETTINGS = {"idempotent": "true", "power_loss": "true", "flush_messages": "1", "kills": "20"}

_run = _Opening.run


async def run(self: _Opening) -> PartitionLog:
    log = await _run(self)
    log._producers.clear(log.end_offset)
    return log


def honest(seed: int) -> History:
    return trial("broker-crash", seed, settings={**SETTINGS, "messages": "300"})


def false(seed: int) -> History:
    with patch.object(_Opening, "run", run):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="duplicate",
    world="The broker recognizes a batch that an idempotent producer repeats, and refuses gaps, as long as it lives. "
    "What it knows of producers is gone with its process; their next batches are taken, as those of unknown producers.",
    false=false,
    honest=honest,
)
