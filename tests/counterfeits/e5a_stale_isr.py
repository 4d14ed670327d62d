"""E5a: a controller that elects by the ISR that stood when the topic was created."""

from collections.abc import Collection, Sequence
from typing import Any
from unittest.mock import patch

from counterfeit import Counterfeit, trial

import controller.elections
from controller.leader_election import Election, LeaderAndIsr, offline
from rebalance_lab.history.files import History

DOWN = {"unclean": "false"}


def by_the_first_isr(assignment: Sequence[int], current: LeaderAndIsr, live: Collection[int], **more: Any) -> Election:
    first = LeaderAndIsr(current.leader, current.leader_epoch, tuple(assignment))
    return offline(assignment, first, live, **more)


def honest(seed: int) -> History:
    return trial("all-replicas-down", seed, settings=DOWN)


def false(seed: int) -> History:
    with patch.object(controller.elections, "offline", by_the_first_isr):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim="E5a",
    check="leader_outside_isr",
    world="The controller elects a live member of an ISR, with the next leader epoch and an ISR that holds the leader; "
    "but it takes the ISR that it remembers from the topic's creation, and not the one that stands in ZooKeeper.",
    false=false,
    honest=honest,
)
