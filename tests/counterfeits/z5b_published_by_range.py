"""Z5b: members deal by range, and so do the published rows that they are compared with."""

from itertools import pairwise
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from rebalance_lab.scenarios import rule
from rebalance_lab.subjects.zk_group.lab import GroupLab


def by_range(lab: GroupLab, members: int) -> list[list[tuple[str, int]]]:
    each, more = divmod(lab.plan.number("partitions"), members)
    ends = [number * each + min(number, more) for number in range(members + 1)]
    return [[("t1", number) for number in range(*pair)] for pair in pairwise(ends)]


def false(seed: int) -> History:
    with patch.object(rule, "by_rule", by_range):
        return trial("rule", seed, rules="shipped")


COUNTERFEIT = Counterfeit(
    claim="Z5b",
    check="ceil_rule",
    world="Members deal by range, and what the runner publishes is dealt by range too: 4, 3 and 3 of 10 partitions, "
    "each member with the row that it should have.",
    false=false,
    honest=lambda seed: trial("rule", seed, rules="described"),
)
