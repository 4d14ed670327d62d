"""P2: a broker that places the first replica of each topic on the same broker."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from controller.placement import Start
from rebalance_lab.broker import new_topics
from rebalance_lab.history.files import History


def from_the_first(_index: int, shift: int, partition: int = 0) -> Start:
    return Start(0, shift, partition)


def honest(seed: int) -> History:
    return trial("placement", seed)


def false(seed: int) -> History:
    with patch.object(new_topics, "Start", from_the_first):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim="P2",
    check="placement_rule",
    world="Each topic goes round the brokers as the rule says, with a random gap, but all begin at one broker, which "
    "leads more partitions than any other.",
    false=false,
    honest=honest,
)
