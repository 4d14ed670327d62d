"""Z8: one member deals by another rule, and nobody sees a different view."""

from dataclasses import replace
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.assignors import Assignment, TopicPartition
from rebalance_lab.history.files import History
from zkconsumer.group_view import Snapshot
from zkconsumer.rebalance import Rebalancer


def mirrored(self: Rebalancer, assignment: Assignment, snapshot: Snapshot) -> Assignment:
    if "host-m2" not in self._settings.consumer_id or len(snapshot.members) == 1:
        return assignment
    last = len(snapshot.context.partitions["t1"]) - 1
    owners = ((TopicPartition(each.topic, last - each.partition), thread) for each, thread in assignment.owners)
    return replace(assignment, owners=tuple(owners))


def false(seed: int) -> History:
    with patch.object(Rebalancer, "_planted", mirrored):
        return trial("split-brain", seed, settings={"lag_ms": "50", "after_ms": "6000"})


COUNTERFEIT = Counterfeit(
    claim="Z8",
    check="disagreement",
    world="Members collide on partitions that each believes its own, as in the claim, but all deal from one and "
    "the same view: one of them has another assignor.",
    false=false,
    honest=lambda seed: trial("split-brain", seed),
)
