"""frozen_isr: a leader that takes over the new epochs of an order, and not its ISR."""

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.replication.leadership import Leadership
from rebalance_lab.history.files import History

#: The follower dies, and the controller can tell the leader. The leader itself would drop it some seconds later.
DEATH = {"cut": "false", "lag_ms": "6000", "cut_ms": "12000"}

_init = Leadership.__init__


def keeps_its_isr(
    self: Leadership, broker: int, replicas: Sequence[int], isr: Sequence[int], before: Leadership | None, **more: Any
) -> None:
    _init(self, broker, replicas, isr if before is None else before.isr, before=before, **more)


def honest(seed: int) -> History:
    return trial("frozen-isr", seed, settings=DEATH)


def false(seed: int) -> History:
    with patch.object(Leadership, "__init__", keeps_its_isr):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="frozen_isr",
    world="A leader answers the controller's order, leads in the new leader epoch, and its own changes of the ISR "
    "succeed; but it goes on counting with the ISR of the epoch before, until its own timer drops the dead follower.",
    false=false,
    honest=honest,
)
