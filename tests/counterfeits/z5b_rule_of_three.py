"""Members that deal by the published rule in small groups only."""

from __future__ import annotations

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.assignors import ASSIGNORS, Assignment
from rebalance_lab.history.files import History
from zkconsumer.group_view import Snapshot
from zkconsumer.rebalance import Rebalancer

#: As the ledger's reading asks for.
_SEVEN = {"members": "7"}


def false(seed: int) -> History:
    def planted(_rebalancer: Rebalancer, assignment: Assignment, snapshot: Snapshot) -> Assignment:
        return ASSIGNORS["range"](snapshot.context) if len(snapshot.members) > 3 else assignment

    with patch.object(Rebalancer, "_planted", planted):
        return trial("rule", seed, settings=_SEVEN)


COUNTERFEIT = Counterfeit(
    claim="Z5b",
    check="ceil_rule",
    world="Members deal by N = ceil(P/C) in groups of up to three, the default of the scenario, and by range in larger "
    "ones. The ledger asks for trials in which seven members join one by one.",
    false=false,
    honest=lambda seed: trial("rule", seed, settings=_SEVEN),
)
