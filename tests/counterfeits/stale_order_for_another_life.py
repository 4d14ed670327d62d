"""stale_order: brokers that compare controller epochs, and obey orders for a former life."""

from collections.abc import Callable
from contextlib import ExitStack
from unittest.mock import patch

import msgspec
from counterfeit import Counterfeit, trial

from controller.channels import BrokerChannels
from controller.request_batch import ControlRequest, Send
from controller.stimuli import Stimulus
from rebalance_lab.broker.replicas import Replicas
from rebalance_lab.history.files import History

_send = BrokerChannels.send


def by_the_first_epoch() -> Callable[..., None]:
    """Orders name the broker epoch under which this controller, or one before it, has known the broker first."""
    first: dict[int, int] = {}

    def send(self: BrokerChannels, what: Send, answered: Callable[[Stimulus], None]) -> None:
        epoch = first.setdefault(what.broker_id, what.request.broker_epoch)
        _send(self, Send.of(what.broker_id, msgspec.structs.replace(what.request, broker_epoch=epoch)), answered)

    return send


def only_controllers(self: Replicas, request: ControlRequest) -> None:
    self.controller_epoch = max(self.controller_epoch, request.controller_epoch)


def honest(seed: int) -> History:
    return trial("controller-failover", seed, settings={})


def false(seed: int) -> History:
    with ExitStack() as stack:
        stack.enter_context(patch.object(BrokerChannels, "send", by_the_first_epoch()))
        stack.enter_context(patch.object(Replicas, "fence", only_controllers))
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="stale_order",
    world="The controller notices each bounce, elects anew and sends the broker all its orders, which name no deposed "
    "controller; but they are meant for the life that the broker had first, and it does not look at that.",
    false=false,
    honest=honest,
)
