"""ahead_of_isr: a leader that lets a follower join as soon as it fetches, and waits for it from then on."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.replication.leadership import Leadership
from rebalance_lab.history.files import History

#: The follower has more time than it needs, so that it is not dropped again.
PATIENT = {"min_isr": "1", "lacks": "300", "messages": "800", "lag_ms": "5000"}


def at_once(self: Leadership, follower: int, **_: int) -> tuple[int, ...] | None:
    """It will not be asked for what it lacks: the high watermark stands still until it has fetched that."""
    if self.proposed is not None or follower in self.isr or not self._may_be_in_sync(follower):
        return None
    return (*self.isr, follower)


def honest(seed: int) -> History:
    return trial("isr-flap", seed, settings=PATIENT)


def false(seed: int) -> History:
    with patch.object(Leadership, "with_joined", at_once):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="ahead_of_isr",
    world="A follower comes back and joins the ISR with its first fetch. The leader commits nothing more until the "
    "follower has it, so that each commit is in the logs of all in sync; but until it has caught up the follower lacks "
    "what was committed before, and may be elected.",
    false=false,
    honest=honest,
)
