"""needless_election: a controller that takes a live follower out of the ISR together with a dead one."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from controller.isr_removals import IsrRemovals
from controller.leader_election import LeaderAndIsr
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.files import History

_gone = IsrRemovals._gone


def with_another(self: IsrRemovals, partition: TopicPartition, state: LeaderAndIsr) -> list[int]:
    gone = _gone(self, partition, state)
    others = [each for each in state.isr if each not in gone and each != state.leader]
    return [*gone, *others[-1:]] if gone else []


def honest(seed: int) -> History:
    return trial("duties", seed, settings={"duty": "broker-fails", "kill_at": "0"})


def false(seed: int) -> History:
    with patch.object(IsrRemovals, "_gone", with_another):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="needless_election",
    world="A broker dies, and the controller takes it out of the ISR, as it should; but it drops a live follower with "
    "it, which joins again a moment later. Nothing is lost, and at rest everything is as it should be.",
    false=false,
    honest=honest,
)
