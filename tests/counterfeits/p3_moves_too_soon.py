"""P3: a producer that expects the growth, and moves keys before it."""

from itertools import count
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from rebalance_lab.roles import keyed_client
from rebalance_lab.wire.kafka.partitioner import partition_for

#: After so many records, and to so many partitions: before the topic grows, and as it will.
SOON, GROWN = 24, 5


def honest(seed: int) -> History:
    return trial("grow-only", seed)


def false(seed: int) -> History:
    calls = count(1)

    def expecting(key: bytes, partitions: int) -> int:
        later = partition_for(key, GROWN)
        return later if next(calls) > SOON and later < partitions else partition_for(key, partitions)

    with patch.object(keyed_client, "partition_for", expecting):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim="P3",
    check="grow_only",
    world="The topic grows, and each key is where the old or the new number of partitions puts it; but the producer "
    "knows the new number before the topic has it.",
    false=false,
    honest=honest,
)
