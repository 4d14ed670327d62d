"""needless_election: a controller whose new partitions have an ISR of their leader alone, which the others join."""

from collections.abc import Collection, Sequence
from unittest.mock import patch

from counterfeit import Counterfeit, trial

import controller.elections
from controller.leader_election import Election, LeaderAndIsr, first_leader
from rebalance_lab.history.files import History


def alone(assignment: Sequence[int], live: Collection[int]) -> Election:
    found = first_leader(assignment, live)
    leader = found.leader_and_isr.leader
    return Election(LeaderAndIsr(leader, 0, (leader,)), found.receivers)


def honest(seed: int) -> History:
    return trial("controller-failover", seed, settings={"rounds": "1"})


def false(seed: int) -> History:
    with patch.object(controller.elections, "first_leader", alone):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="needless_election",
    world="A new partition has its replicas and its leader; but the others join the ISR only once they have fetched. "
    "Whoever writes with acks=all in that moment has one copy, and nobody is told.",
    false=false,
    honest=honest,
)
