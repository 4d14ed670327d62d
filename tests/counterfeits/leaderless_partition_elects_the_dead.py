"""leaderless_partition: a controller that elects a broker that is dead, and so has a leader for each partition."""

from collections.abc import Collection, Sequence
from typing import Any
from unittest.mock import patch

from counterfeit import Counterfeit, trial

import controller.elections
from controller.leader_election import Election, LeaderAndIsr, offline
from rebalance_lab.history.files import History


def whoever_is_first(assignment: Sequence[int], current: LeaderAndIsr, live: Collection[int], **rules: Any) -> Election:
    return offline(assignment, current, {*live, *current.isr}, **rules)


def honest(seed: int) -> History:
    return trial("leader-start", seed, settings={})


def false(seed: int) -> History:
    with patch.object(controller.elections, "offline", whoever_is_first):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="leaderless_partition",
    world="When a leader dies, the controller elects the first of the ISR without asking who is live, and that is the "
    "same broker: each partition has a leader, and a new leader epoch, and nobody answers.",
    false=false,
    honest=honest,
)
