"""under_min_isr: a leader that takes the replicas in sync for all replicas."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.replication.leadership import Leadership
from rebalance_lab.history.files import History

KILLS = {"fault": "kill", "min_isr": "3"}


def of_those_in_sync(self: Leadership, min_isr: int) -> int:
    return min(min_isr, len(self.isr))


def honest(seed: int) -> History:
    return trial("committed-data", seed, settings=KILLS)


def false(seed: int) -> History:
    with patch.object(Leadership, "effective_min_isr", of_those_in_sync):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="under_min_isr",
    world="From Kafka 3.7 on no more replicas need be in sync than there are. This leader makes this comparison, but "
    "with the replicas that are in sync, so they are always enough, and min.insync.replicas has no effect. No record "
    "is lost, because one of the ISR survives.",
    false=false,
    honest=honest,
)
