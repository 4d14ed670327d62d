"""replica_divergence: a follower that takes the first of several batches for one that it has."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.partition import Partition
from rebalance_lab.history.files import History
from rebalance_lab.wire.kafka.records import batches

#: A follower that comes back fetches many batches at once. One round: no follower with a gap leads.
RETURNS = {"fault": "kill", "rounds": "1"}

#: In these records are written while the follower is away.
SEEDS = (2, 3, 5)

#: One or two are what a follower gets that has not been away.
SEVERAL = 3

_append_fetched = Partition.append_fetched


async def append_fetched(self: Partition, records: bytes, leader_epoch: int, **fetched: int) -> bool:
    begins = [at for at, _ in batches(records)]
    if len(begins) >= SEVERAL:
        records = records[begins[1] :]
    return await _append_fetched(self, records, leader_epoch, **fetched)


def honest(seed: int) -> History:
    return trial("committed-data", SEEDS[seed], settings={**RETURNS, "messages": "200"})


def false(seed: int) -> History:
    with patch.object(Partition, "append_fetched", append_fetched):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="replica_divergence",
    world="A follower comes back and fetches what it lacks. It takes the first of several batches for one that it has, "
    "and writes the others, with offsets that rise. Its log ends where the leader's does, it joins the ISR, and each "
    "record that it has is right; but one that was acknowledged is missing, and would be lost if it led.",
    false=false,
    honest=honest,
)
