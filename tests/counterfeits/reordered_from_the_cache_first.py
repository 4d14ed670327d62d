"""reordered: a broker that sends what is in the cache before what it must read from the disk."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.log.log import PartitionLog
from rebalance_lab.broker.log.results import Records, UpTo
from rebalance_lab.history.files import History
from rebalance_lab.wire.kafka.records import batches

_read = PartitionLog.read


async def read(
    self: PartitionLog, offset: int, max_bytes: int, up_to: UpTo = UpTo.LOG_END, *, at_least_one: bool = True
) -> Records:
    """The second batch of an answer to a consumer comes first; the last stays, so that the reader goes on behind it."""
    found = await _read(self, offset, max_bytes, up_to, at_least_one=at_least_one)
    data = bytes(found.data)
    starts = [at for at, _ in batches(data)]
    if up_to is not UpTo.HIGH_WATERMARK or len(starts) < 3:
        return found
    _, second, third = starts[:3]
    return found._replace(data=data[second:third] + data[:second] + data[third:])


def honest(seed: int) -> History:
    return trial("committed-data", seed, settings={"fault": "kill"})


def false(seed: int) -> History:
    with patch.object(PartitionLog, "read", read):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="reordered",
    world="Every record that was acknowledged is read once, at its offset, and all replicas are alike; but answers to "
    "consumers hold two batches in the wrong order, so that a record is delivered before an older one.",
    false=false,
    honest=honest,
)
