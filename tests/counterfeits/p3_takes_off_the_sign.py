"""P3: a producer that takes off the sign of the hash, where Kafka's masks it."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from rebalance_lab.roles import keyed_client
from rebalance_lab.wire.kafka.partitioner import murmur2


def without_sign(key: bytes, partitions: int) -> int:
    return abs(murmur2(key)) % partitions


def honest(seed: int) -> History:
    return trial("grow-only", seed)


def false(seed: int) -> History:
    with patch.object(keyed_client, "partition_for", without_sign):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim="P3",
    check="grow_only",
    world="Each key has one partition before the growth and one after it, and shrinking is refused; but the producer "
    "takes off the sign of the hash, so some keys are not where other clients look for them.",
    false=false,
    honest=honest,
)
