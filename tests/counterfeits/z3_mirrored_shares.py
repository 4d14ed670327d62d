"""Z3: every partition has one owner and the shares have the right sizes, but in the wrong order."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.assignors.registry import ASSIGNORS
from rebalance_lab.assignors.slices import _deal, ceil_slice
from rebalance_lab.history.files import History


def mirrored(position: int, *, partitions: int, threads: int) -> tuple[int, int]:
    return ceil_slice(threads - 1 - position, partitions=partitions, threads=threads)


def false(seed: int) -> History:
    with patch.dict(ASSIGNORS, ceil=lambda context: _deal(context, mirrored)):
        return trial("walkthrough", seed)


COUNTERFEIT = Counterfeit(
    claim="Z3",
    check="published_rows",
    world="Members deal by ceil over the members in descending order: shares of the right sizes, no partition "
    "twice or left out, but the first member has the share that is published for the last.",
    false=false,
    honest=lambda seed: trial("walkthrough", seed),
)
