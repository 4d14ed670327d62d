"""E3: a zombie whose orders are lost with its connections."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from controller.channels import Deliver
from controller.cluster import LiveBroker
from controller.request_batch import ControlRequest
from rebalance_lab.broker.halting import Halt
from rebalance_lab.history.files import History
from rebalance_lab.kernel import Future
from rebalance_lab.wire.kafka.schema import Message

SETTINGS = {"moment": "order", "fences_orders": "false"}


def losing(self: Halt, inner: Deliver) -> Deliver:
    """As `deliver`, but what was held back is never sent."""

    async def deliver(broker: LiveBroker, request: ControlRequest) -> Message:
        if not self.passes(lambda: f"{type(request).__name__.removesuffix('Request')} to broker {broker.broker_id}"):
            await Future("an answer on a connection that is lost")
        return await inner(broker, request)

    return deliver


def honest(seed: int) -> History:
    return trial("zombie-controller", seed, settings=SETTINGS)


def false(seed: int) -> History:
    with patch.object(Halt, "deliver", losing):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim="E3",
    check="stale_order",
    world="The zombie wakes, and no broker would refuse it; but its connections are gone, so the order that it was "
    "about to send reaches nobody.",
    false=false,
    honest=honest,
)
