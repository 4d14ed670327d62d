"""Z8: members see different lists, and deal the same shares from all of them: who comes gets nothing."""

from __future__ import annotations

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History


def _false(seed: int) -> History:
    """Four members own four partitions, and two more come."""
    return trial("split-brain", seed, settings={"partitions": "4"})


def _honest(seed: int) -> History:
    """Six partitions: the first member's share is smaller by the newer list."""
    return trial("split-brain", seed)


COUNTERFEIT = Counterfeit(
    claim="Z8",
    check="disagreement",
    world="Members deal from different lists at one moment, and all lists give them the same shares.",
    false=_false,
    honest=_honest,
)
