"""leader_outside_isr: a controller that has the last live replica of a new partition lead."""

from collections.abc import Collection, Sequence
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from controller import elections
from controller.leader_election import Election, LeaderAndIsr, first_leader
from rebalance_lab.history.files import History


def last_leads(assignment: Sequence[int], live: Collection[int]) -> Election:
    chosen = first_leader(assignment, live)
    isr = chosen.leader_and_isr.isr
    return Election(LeaderAndIsr(isr[-1], 0, isr), chosen.receivers)


def honest(seed: int) -> History:
    return trial("duties", seed, settings={"duty": "create-topic", "kill_at": "0"})


def false(seed: int) -> History:
    with patch.object(elections, "first_leader", last_leads):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="leader_outside_isr",
    world="Each new partition is led by one of its replicas, which is live and in the ISR; but it is the last of them, "
    "so that leaders are where nobody has placed them.",
    false=false,
    honest=honest,
)
