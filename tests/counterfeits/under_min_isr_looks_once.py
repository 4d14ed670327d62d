"""under_min_isr: a leader that looks at its ISR before it writes a record, and not again."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import msgspec
from counterfeit import Counterfeit, trial

from rebalance_lab.broker.partition import Partition
from rebalance_lab.broker.replication.leadership import Leadership
from rebalance_lab.history.files import History

#: A record that is written when a follower dies waits until the leader drops the follower.
KILLS = {"fault": "kill", "min_isr": "3", "rounds": "6", "messages": "400"}


def always_rises(_self: Leadership, _min_isr: int) -> bool:
    return False


def looks_at_the_high_watermark_only(self: Partition, offset: int, _epoch: int) -> bool:
    return self.log.high_watermark > offset


@contextmanager
def _up_to_3_6() -> Iterator[None]:
    """The high watermark rises whatever the ISR is."""
    with patch.object(Leadership, "is_under", always_rises):
        yield


def _trial(seed: int) -> History:
    history = trial("committed-data", seed, settings=KILLS)
    parameters = {**history.trial.parameters, "commits_under_min_isr": True}
    return History(msgspec.structs.replace(history.trial, parameters=parameters), history.events)


def honest(seed: int) -> History:
    with _up_to_3_6():
        return _trial(seed)


def false(seed: int) -> History:
    with _up_to_3_6(), patch.object(Partition, "is_committed", looks_at_the_high_watermark_only):
        return _trial(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="under_min_isr",
    world="As up to Kafka 3.6 the high watermark also rises while too few are in sync. The leader refuses writes then, "
    "but it does not look again when a record is committed that it took before. It acknowledges one whose ISR has "
    "fallen below min.insync.replicas meanwhile.",
    false=false,
    honest=honest,
)
