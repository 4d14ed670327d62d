"""E1: a broker that looks, sees that there is no controller, and leaves the race to the others."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from controller import controller
from controller.election import ControllerMoved, Elected, elect
from controller.forms import ControllerForm
from controller.settings import ControllerBug
from rebalance_lab.history.files import History
from rebalance_lab.wire.paths import CONTROLLER
from rebalance_lab.zkclient.pipelined import PipelinedClient

#: It stands for no election as long as there are others.
ASIDE = 5


async def not_by_me(
    client: PipelinedClient,
    broker_id: int,
    *,
    timestamp_ms: int,
    form: ControllerForm = ControllerForm.V2_1,
    bug: ControllerBug | None = None,
    reads_back: bool = True,
) -> Elected:
    if broker_id != ASIDE:
        return await elect(client, broker_id, timestamp_ms=timestamp_ms, form=form, bug=bug, reads_back=reads_back)
    while (await client.ask(lambda session: session.exists(CONTROLLER))).value is None:
        pass  # each look takes its time
    raise ControllerMoved("another broker has been elected")


def honest(seed: int) -> History:
    return trial("controller-race", seed, settings={})


def false(seed: int) -> History:
    with patch.object(controller, "elect", not_by_me):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim="E1",
    check="one_winner",
    world="Several brokers ask at once, one wins, and nobody reigns beside it; but one broker, which has seen as well "
    "that there is no controller, and watches the znode as it must, waits until another has been elected.",
    false=false,
    honest=honest,
)
