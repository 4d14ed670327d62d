"""garbage_read: a broker that builds each batch anew, and loses the last byte of each value."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.log.log import PartitionLog
from rebalance_lab.broker.log.results import Appended
from rebalance_lab.history.files import History
from rebalance_lab.wire.kafka.records import Record, build_batch, records

_append = PartitionLog.append


async def append(self: PartitionLog, data: bytes, leader_epoch: int) -> Appended:
    cut = [Record(each.key, (each.value or b"")[:-1], each.timestamp_ms, each.headers) for each in records(data)]
    return await _append(self, build_batch(cut), leader_epoch)


def honest(seed: int) -> History:
    return trial("broker-crash", seed)


def false(seed: int) -> History:
    with patch.object(PartitionLog, "append", append):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="garbage_read",
    world="The broker unpacks each batch and packs it again, as brokers did that changed the compression. Offsets, "
    "numbers and checksums are right, and each value has lost its last byte, which was filler.",
    false=false,
    honest=honest,
)
