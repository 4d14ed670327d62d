"""churn: a member takes its partitions away from itself, and gives them back, for no change at all."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from zkconsumer.watcher import Watcher


def unasked(self: Watcher) -> bool:
    self._idle_wakes += 1
    return self._idle_wakes == 4


def false(seed: int) -> History:
    with patch.object(Watcher, "_unasked", unasked):
        return trial("zombie", seed, control=True)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="churn",
    world="Nobody comes or goes, and every member ends up with what it had; but each rebalances once after four "
    "quiet seconds, to be on the safe side, and interrupts all of its partitions.",
    false=false,
    honest=lambda seed: trial("zombie", seed, control=True),
)
