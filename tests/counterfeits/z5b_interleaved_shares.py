"""Z5b: each member gets N = ceil(P/C) partitions, but not those from iN to (i+1)N-1."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.assignors import Assignment, AssignmentContext, TopicPartition
from rebalance_lab.assignors.registry import ASSIGNORS
from rebalance_lab.assignors.slices import ceil
from rebalance_lab.history.files import History


def interleaved(context: AssignmentContext) -> Assignment:
    """By ceil, over the even partitions and then the odd ones."""
    found = ceil(context)
    owners = []
    for (topic, number), thread in found.owners:
        count = len(context.partitions[topic])
        dealt = [*range(0, count, 2), *range(1, count, 2)]
        owners.append((TopicPartition(topic, dealt[number]), thread))
    return Assignment(tuple(sorted(owners)), found.warnings)


def false(seed: int) -> History:
    with patch.dict(ASSIGNORS, ceil=interleaved):
        return trial("rule", seed)


COUNTERFEIT = Counterfeit(
    claim="Z5b",
    check="published_rows",
    world="Of 10 partitions three members get 4, 4 and 2, as ceil says, but the even partitions are dealt "
    "before the odd ones: the sizes are right and the slices are not.",
    false=false,
    honest=lambda seed: trial("rule", seed),
)
