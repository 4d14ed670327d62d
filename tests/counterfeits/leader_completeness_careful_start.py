"""leader_completeness: a broker that starts, and drops what its checkpoint does not know to be committed."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.partition import Partition, ReplicaRole
from rebalance_lab.history.files import History
from rebalance_lab.wire.kafka.messages.leader_and_isr import LeaderAndIsrPartitionState

_lead = Partition.lead


async def careful(self: Partition, state: LeaderAndIsrPartitionState) -> None:
    if self.role is ReplicaRole.IDLE:
        await self.log.truncate_to(self.log.high_watermark)
    await _lead(self, state)


def honest(seed: int) -> History:
    return trial("all-replicas-down", seed, settings={})


def false(seed: int) -> History:
    with patch.object(Partition, "lead", careful):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="leader_completeness",
    world="The partition waits for the last replica in sync, every election is clean, and leaders only ever raise "
    "their high watermarks; but a broker that starts drops what is above the one in its checkpoint, seconds old.",
    false=false,
    honest=honest,
)
