"""Planted bugs: each breaks one rule of KIP-320, and the explorer finds a schedule that shows it."""

from __future__ import annotations

from typing import Any

from rebalance_lab.broker.log.epochs import UNDEFINED_EPOCH
from rebalance_lab.broker.replication.leadership import Leadership
from rebalance_lab.explore.control import Control, ControlSteps
from rebalance_lab.explore.replica import Isr, Replica, ReplicaSteps
from rebalance_lab.history.planted import PlantedBug
from rebalance_lab.wire.kafka.sentinels import NO_LEADER_EPOCH


class RuleBug(PlantedBug):
    """The planted bugs of the explorer."""

    JOINS_EARLY = "joins-early", "a follower joins the ISR below the start of the leader epoch (KAFKA-7128)"
    COUNTS_OLD_FETCHES = "counts-old-fetches", "a leader counts fetches of followers that know an older leader epoch"
    CUTS_AT_LEADER_END = (
        "cuts-at-leader-end",
        "a follower truncates to the end of its leader's log, whatever the epochs",
    )
    COUNTS_DIVERGING = (
        "counts-diverging-fetches",
        "a leader counts fetches although it answers that the logs part (KAFKA-13141)",
    )
    IGNORES_PROPOSED = "ignores-proposed", "the high watermark does not wait for a follower that may have joined"
    UNFENCED_ISR = "unfenced-isr", "the controller writes the ISR that a deposed leader asks for"
    ELECTS_OUT_OF_SYNC = "elects-out-of-sync", "the controller elects a replica from outside the ISR"


class _JoinsEarly(ReplicaSteps):
    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.joins_from_epoch_start = False


class _CountsOldFetches(ReplicaSteps):
    def _known_epoch(self, replica: Replica) -> int:
        return NO_LEADER_EPOCH


class _CutsAtLeaderEnd(ReplicaSteps):
    def last_epoch(self, replica: Replica) -> int:
        return UNDEFINED_EPOCH


class _CountsDiverging(ReplicaSteps):
    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.counts_diverging = True


class _IgnoresProposed(ReplicaSteps):
    def high_watermark(self, leadership: Leadership, replica: Replica) -> int:
        proposed, leadership.proposed = leadership.proposed, None
        try:
            return super().high_watermark(leadership, replica)
        finally:
            leadership.proposed = proposed


class _UnfencedIsr(ControlSteps):
    def writes(self, control: Control, leader_epoch: int, isr: Isr) -> bool:
        return True


class _ElectsOutOfSync(ControlSteps):
    unclean_allowed = True


_PLANTS: dict[RuleBug, dict[str, Any]] = {
    RuleBug.JOINS_EARLY: {"replica_steps": _JoinsEarly},
    RuleBug.COUNTS_OLD_FETCHES: {"replica_steps": _CountsOldFetches},
    RuleBug.CUTS_AT_LEADER_END: {"replica_steps": _CutsAtLeaderEnd},
    RuleBug.COUNTS_DIVERGING: {"replica_steps": _CountsDiverging},
    RuleBug.IGNORES_PROPOSED: {"replica_steps": _IgnoresProposed},
    RuleBug.UNFENCED_ISR: {"control_steps": _UnfencedIsr},
    RuleBug.ELECTS_OUT_OF_SYNC: {"control_steps": _ElectsOutOfSync},
}


def planted(bug: RuleBug | None) -> dict[str, Any]:
    """What `Partition` is made with, so that it has the bug."""
    return {} if bug is None else _PLANTS[bug]
