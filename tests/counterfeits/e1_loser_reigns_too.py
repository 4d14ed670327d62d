"""E1: a broker that was refused, reads the new epoch, and takes the first reign it finds for its own."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

import controller.election
from controller.election import ControllerMoved, Elected
from rebalance_lab.history.files import History
from rebalance_lab.wire.paths import CONTROLLER
from rebalance_lab.world.errors import NoNode
from rebalance_lab.zkclient.pipelined import PipelinedClient


async def whoever_holds_it(client: PipelinedClient, broker_id: int, epoch: int) -> Elected:
    """As after a lost reply, but without a look at the name in the znode."""
    now, version = await controller.election._epoch(client)
    try:
        await client.ask(lambda session: session.get(CONTROLLER))
    except NoNode:
        raise ControllerMoved(f"broker {broker_id} was not elected: try again") from None
    return Elected(now, version)


def honest(seed: int) -> History:
    return trial("controller-race", seed, settings={})


def false(seed: int) -> History:
    with patch.object(controller.election, "_read_back", whoever_holds_it):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim="E1",
    check="one_winner",
    world="Several brokers ask at once, ZooKeeper lets one create the znode and refuses the others, and the epoch "
    "rises by one; but a refused broker looks whether there is a controller now, and not who it is.",
    false=false,
    honest=honest,
)
