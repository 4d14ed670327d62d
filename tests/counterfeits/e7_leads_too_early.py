"""E7: a controller that says it waits for a replica in sync, and lets the first that returns lead."""

from collections.abc import Collection, Sequence
from typing import Any
from unittest.mock import patch

from counterfeit import Counterfeit, trial

import controller.elections
from controller.leader_election import Election, LeaderAndIsr, offline
from rebalance_lab.history.files import History


def unclean_anyhow(
    assignment: Sequence[int], current: LeaderAndIsr, live: Collection[int], *, unclean_allowed: bool, **more: Any
) -> Election:
    return offline(assignment, current, live, unclean_allowed=True, **more)


def honest(seed: int) -> History:
    return trial("all-replicas-down", seed, settings={"unclean": "false"})


def false(seed: int) -> History:
    with patch.object(controller.elections, "offline", unclean_anyhow):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim="E7",
    check="unavailable_partition",
    world="The setting has the partition wait for the last one in sync, and it has no leader for half a second; but "
    "that is the time until the first replica returns, which the controller lets lead.",
    false=false,
    honest=honest,
)
