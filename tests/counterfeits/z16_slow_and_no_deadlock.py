"""Z16: members that keep their claims and wait for each other, and heal by themselves."""

from collections import Counter
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from zkconsumer.rebalance import Rebalancer

#: Attempts that go on with what is held; the next one gives it back and reads again.
PATIENCE = 3


def false(seed: int) -> History:
    tries: Counter[Rebalancer] = Counter()

    def stale(self: Rebalancer) -> bool:
        tries[self] += 1
        return tries[self] > PATIENCE

    with patch.object(Rebalancer, "_stale", stale):
        return trial("deadlock", seed)


COUNTERFEIT = Counterfeit(
    claim="Z16",
    check="hold_and_wait",
    world="Two members keep what they claimed and wait for each other during several attempts, then give it back: what "
    "looks like a deadlock is only slow.",
    false=false,
    honest=lambda seed: trial("deadlock", seed),
)
