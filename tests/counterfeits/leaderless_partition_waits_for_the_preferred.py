"""leaderless_partition: a controller that lets partitions wait for their preferred leaders."""

from collections.abc import Collection, Sequence
from typing import Any
from unittest.mock import patch

from counterfeit import Counterfeit, trial

import controller.elections
from controller.leader_election import Election, LeaderAndIsr, NoLeader, offline
from rebalance_lab.history.files import History


def preferred_only(assignment: Sequence[int], current: LeaderAndIsr, live: Collection[int], **rules: Any) -> Election:
    if assignment[0] not in live:
        raise NoLeader(f"broker {assignment[0]} is the preferred leader; start it")
    return offline(assignment, current, live, **rules)


def honest(seed: int) -> History:
    return trial("leader-start", seed, settings={})


def false(seed: int) -> History:
    with patch.object(controller.elections, "offline", preferred_only):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="leaderless_partition",
    world="When a leader dies, its partitions wait for it, though others have all that it had. No state is wrong, "
    "nothing is lost, and what the client is told stays true: it is told that there is no leader.",
    false=false,
    honest=honest,
)
