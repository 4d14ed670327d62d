"""assignment_order: a controller that prefers the replica which joined the ISR first."""

from collections.abc import Collection, Sequence
from typing import Any
from unittest.mock import patch

from counterfeit import Counterfeit, trial

import controller.elections
from controller.leader_election import Election, LeaderAndIsr, offline
from rebalance_lab.history.files import History


def oldest(assignment: Sequence[int], current: LeaderAndIsr, live: Collection[int], **more: Any) -> Election:
    by_age = sorted(assignment, key=lambda each: current.isr.index(each) if each in current.isr else len(current.isr))
    return offline(by_age, current, live, **more)


def honest(seed: int) -> History:
    return trial("isr-election", seed)


def false(seed: int) -> History:
    with patch.object(controller.elections, "offline", oldest):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="assignment_order",
    world="The controller elects a live replica in sync with the next leader epoch, and nothing is lost; but of those "
    "in sync it prefers the one that has been in the ISR for the longest time.",
    false=false,
    honest=honest,
)
