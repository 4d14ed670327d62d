"""E5a: the controller elects from the ISR, and a replica outside it leads as well."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.partition import ReplicaContext
from rebalance_lab.history.files import History
from rebalance_lab.wire.kafka.messages.leader_and_isr import LeaderAndIsrPartitionState


def or_outside(self: ReplicaContext, state: LeaderAndIsrPartitionState) -> bool:
    return self.broker_id == state.leader or self.broker_id not in state.isr


def honest(seed: int) -> History:
    return trial("isr-election", seed, settings={})


def false(seed: int) -> History:
    with patch.object(ReplicaContext, "leads_by", or_outside):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim="E5a",
    check="two_leaders",
    world="Every state in ZooKeeper names a leader of the ISR, with the next leader epoch; but a replica that has been "
    "away, and is not in sync, leads as soon as it hears of the state.",
    false=false,
    honest=honest,
)
