"""contradiction: one member deals in the opposite order in the first attempt of each rebalance only."""

from unittest.mock import patch

import z8_one_view_two_rules as two_rules
from counterfeit import Counterfeit, trial

from rebalance_lab.assignors import Assignment
from rebalance_lab.history.files import History
from zkconsumer.group_view import Snapshot
from zkconsumer.rebalance import Rebalancer

_TRY = Rebalancer._try


def false(seed: int) -> History:
    attempts: dict[Rebalancer, int] = {}

    async def try_(self: Rebalancer, number: int) -> bool:
        attempts[self] = number
        return await _TRY(self, number)

    def planted(self: Rebalancer, assignment: Assignment, snapshot: Snapshot) -> Assignment:
        return two_rules.mirrored(self, assignment, snapshot) if attempts[self] == 0 else assignment

    with patch.object(Rebalancer, "_try", try_), patch.object(Rebalancer, "_planted", planted):
        return trial("leave", seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="contradiction",
    world="All members deal from one view. In the first attempt of each rebalance one of them counts partitions from "
    "the last to the first. It meets another's claims, and deals as the others do in the next attempt.",
    false=false,
    honest=lambda seed: trial("leave", seed),
)
