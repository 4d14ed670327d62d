"""under_min_isr: a leader that commits as soon as it has asked for a large enough ISR."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.replication.leadership import Leadership
from rebalance_lab.history.files import History

#: The follower joins while the client goes on writing with acks=1.
BACK = {"lacks": "100", "messages": "400", "caught_up": "true"}


def is_under(self: Leadership, min_isr: int) -> bool:
    return len(self.maximal_isr) < self.effective_min_isr(min_isr)


def honest(seed: int) -> History:
    return trial("isr-flap", seed, settings=BACK)


def false(seed: int) -> History:
    with patch.object(Leadership, "is_under", is_under):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="under_min_isr",
    world="A leader waits for those whom it has asked the controller to add, and acknowledges once it has asked for "
    "enough; so does Kafka. But this one also lets its high watermark rise then. If the controller refuses, readers "
    "have read what only the leader is known to have.",
    false=false,
    honest=honest,
)
