"""stray_fetcher: a follower that keeps its fetcher from a dead leader beside the one from its successor."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.partition import Partition, ReplicaRole
from rebalance_lab.broker.replicas import Replicas
from rebalance_lab.history.files import History
from rebalance_lab.wire.kafka.messages.leader_and_isr import LeaderAndIsrPartitionState
from rebalance_lab.world.network import Address

_follow = Replicas._follow


async def beside(self: Replicas, replica: Partition, state: LeaderAndIsrPartitionState, leader: Address) -> None:
    if replica.role is not ReplicaRole.FOLLOWER or replica.leader == state.leader:
        await _follow(self, replica, state, leader)
        return
    await replica.follow(state)
    self._fetchers.follow(replica, state.leader, leader, state.leader_epoch, followed=None)


def honest(seed: int) -> History:
    return trial("isr-election", seed, settings={})


def false(seed: int) -> History:
    with patch.object(Replicas, "_follow", beside):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="stray_fetcher",
    world="A broker that becomes the leader stops fetching, and each follower gets a fetcher from its new leader; but "
    "the one from the leader before, which is dead, goes on asking until that broker is back and refuses it.",
    false=false,
    honest=honest,
)
