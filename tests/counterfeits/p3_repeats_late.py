"""P3: a client that sends a record of a key again, after later ones of it, and does not say so."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.client.records import produce
from rebalance_lab.history.files import History
from rebalance_lab.roles.keyed_client import _Client, key_of
from rebalance_lab.wire.kafka.partitioner import partition_for
from rebalance_lab.wire.kafka.records import Record

_written = _Client._written

#: Which numbers are followed by an earlier one of their key.
EACH = 7


async def repeating(self: _Client, number: int) -> bool:
    done = await _written(self, number)
    before = number - self._spec.keys
    if done and number % EACH == 0 and before > 0 and self._cluster is not None:
        key = key_of(number, self._spec.keys)
        where = self._spec.topic, partition_for(key, self._partitions)
        await produce(self._cluster, *where, [Record(key, b"%d" % before)], timeout_ms=self._spec.request_timeout_ms)
    return done


def honest(seed: int) -> History:
    return trial("grow-only", seed)


def false(seed: int) -> History:
    with patch.object(_Client, "_written", repeating):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim="P3",
    check="grow_only",
    world="What was acknowledged is read in the end where it was acknowledged, and keys move with the growth only; but "
    "in its partition a key has earlier records behind later ones.",
    false=false,
    honest=honest,
)
