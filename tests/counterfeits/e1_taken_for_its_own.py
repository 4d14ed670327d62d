"""E1: a broker that takes whatever /controller it finds for its own, as after a lost reply."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

import controller.election
from controller.election import ControllerMoved, Elected
from rebalance_lab.history.files import History
from rebalance_lab.zkclient.pipelined import PipelinedClient


async def its_own(client: PipelinedClient, broker_id: int, epoch: int) -> Elected:
    now, version = await controller.election._epoch(client)
    if now != epoch:
        raise ControllerMoved(f"broker {broker_id} finds epoch {now}, and has asked for {epoch}")
    return Elected(now, version)


def honest(seed: int) -> History:
    return trial("controller-race", seed, settings={})


def false(seed: int) -> History:
    with patch.object(controller.election, "_read_back", its_own):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim="E1",
    check="two_controllers",
    world="Every election is one transaction and the registry is right; but a broker that was refused, and finds the "
    "epoch that it has asked for, believes that the reply to its own creation was lost, and reigns beside the winner.",
    false=false,
    honest=honest,
)
