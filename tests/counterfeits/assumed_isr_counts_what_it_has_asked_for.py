"""assumed_isr: a leader that takes a smaller ISR for written once it has asked for it."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.partition import Partition
from rebalance_lab.broker.replication.leadership import Leadership
from rebalance_lab.history.files import History

#: The leader cannot reach the controller, and a follower not the leader.
CUT_OFF = {"follower": "cut-off"}

_ask_for = Partition._ask_for


def hasty(self: Partition, leadership: Leadership, isr: tuple[int, ...]) -> None:
    if len(isr) < len(leadership.isr):
        leadership.isr = isr
    _ask_for(self, leadership, isr)


def honest(seed: int) -> History:
    return trial("frozen-isr", seed, settings=CUT_OFF)


def false(seed: int) -> History:
    with patch.object(Partition, "_ask_for", hasty):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="assumed_isr",
    world="A leader drops a follower that has fallen behind, asks the controller to write so, and goes on when it is "
    "written; but while it cannot reach the controller, it commits without the follower, which may be elected.",
    false=false,
    honest=honest,
)
