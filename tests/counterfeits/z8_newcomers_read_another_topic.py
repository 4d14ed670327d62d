"""Z8: members see different lists, and those that are not in all of them read another topic."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from rebalance_lab.scenarios import split_brain
from rebalance_lab.subjects.zk_group.lab import GroupLab, MemberHandle, MemberOptions

_two_joins = split_brain.two_joins


async def _of_others(lab: GroupLab, late: MemberHandle, quick: MemberOptions) -> None:
    await _two_joins(lab, late, replace(quick, streams={"another": 1}))


def _false(seed: int) -> History:
    with patch.object(split_brain, "two_joins", _of_others):
        return trial("split-brain", seed)


def _honest(seed: int) -> History:
    return trial("split-brain", seed)


COUNTERFEIT = Counterfeit(
    claim="Z8",
    check="disagreement",
    world="Members deal from different lists at one moment; who is missing in one of them reads another topic.",
    false=_false,
    honest=_honest,
)
