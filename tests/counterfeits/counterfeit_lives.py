"""Controllers as up to Kafka 2.1, whose orders are for any life of a broker, in trials of late orders."""

from collections.abc import Callable
from unittest.mock import patch

import msgspec
from counterfeit import trial

from controller.channels import BrokerChannels
from controller.request_batch import Send
from controller.stimuli import Stimulus
from rebalance_lab.history.files import History
from rebalance_lab.scenarios.former_life import LateOrder
from rebalance_lab.wire.kafka.sentinels import NO_BROKER_EPOCH

_send = BrokerChannels.send


def _for_any_life(self: BrokerChannels, what: Send, answered: Callable[[Stimulus], None]) -> None:
    request = msgspec.structs.replace(what.request, broker_epoch=NO_BROKER_EPOCH)
    _send(self, Send.of(what.broker_id, request), answered)


def late_order(seed: int, order: LateOrder) -> History:
    """A trial in which an order is late, and brokers have the fence by broker epoch."""
    return trial("former-life", seed, settings={"order": order, "fences_lives": "true"})


def late_order_for_any_life(seed: int, order: LateOrder) -> History:
    """The same, in which orders do not name a life."""
    with patch.object(BrokerChannels, "send", _for_any_life):
        return late_order(seed, order)
