"""leaderless_partition: a controller that waits for others, and then lets the one lead that returned first."""

from collections.abc import Collection, Sequence
from typing import Any
from unittest.mock import patch

from counterfeit import Counterfeit, trial

import controller.elections
from controller.leader_election import Election, LeaderAndIsr, NoLeader, offline
from rebalance_lab.history.files import History


def not_alone(
    assignment: Sequence[int], current: LeaderAndIsr, live: Collection[int], *, unclean_allowed: bool, **more: Any
) -> Election:
    alive = [each for each in assignment if each in live]
    if unclean_allowed and len(alive) == 1:
        raise NoLeader(f"only {alive[0]} is live; start another replica")
    return offline(assignment, current, live, unclean_allowed=unclean_allowed, **more)


def honest(seed: int) -> History:
    return trial("all-replicas-down", seed, settings={"unclean": "true", "brokers": "4"})


def false(seed: int) -> History:
    with patch.object(controller.elections, "offline", not_alone):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="leaderless_partition",
    world="An unclean election is allowed, and held: the first replica that returns leads, and messages are lost. But "
    "the controller held it only when a second replica was there, so that time was lost as well.",
    false=false,
    honest=honest,
)
