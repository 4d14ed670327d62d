"""E7: unclean elections are allowed, and the controller holds none."""

from collections.abc import Collection, Sequence
from typing import Any
from unittest.mock import patch

from counterfeit import Counterfeit, trial

import controller.elections
from controller.leader_election import Election, LeaderAndIsr, offline
from rebalance_lab.history.files import History


def clean_only(
    assignment: Sequence[int], current: LeaderAndIsr, live: Collection[int], *, unclean_allowed: bool, **more: Any
) -> Election:
    return offline(assignment, current, live, unclean_allowed=False, **more)


def honest(seed: int) -> History:
    return trial("all-replicas-down", seed, settings={"unclean": "true"})


def false(seed: int) -> History:
    with patch.object(controller.elections, "offline", clean_only):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim="E7",
    check="lost_write",
    world="The setting allows the first replica that returns to lead, and the partition soon has a leader again; but "
    "the controller waited for the last one in sync, so that nothing is lost.",
    false=false,
    honest=honest,
)
