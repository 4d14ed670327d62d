"""two_leaders: the first of the assignment leads when it is back, though nobody has elected it."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.partition import ReplicaContext
from rebalance_lab.history.files import History
from rebalance_lab.wire.kafka.messages.leader_and_isr import LeaderAndIsrPartitionState


def preferred(self: ReplicaContext, state: LeaderAndIsrPartitionState) -> bool:
    return self.broker_id in {state.leader, state.replicas[0]}


def honest(seed: int) -> History:
    return trial("isr-election", seed, settings={})


def false(seed: int) -> History:
    with patch.object(ReplicaContext, "leads_by", preferred):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="two_leaders",
    world="The controller elects one leader for each leader epoch, and tells everyone; but the preferred replica, when "
    "it comes back and is told who leads, leads as well, as if a preferred election had taken place.",
    false=false,
    honest=honest,
)
