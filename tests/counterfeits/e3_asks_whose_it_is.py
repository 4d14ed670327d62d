"""E3: a controller of form 0.8.2 that deletes /controller only if it is its own."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from controller import controller
from rebalance_lab.history.files import History
from rebalance_lab.wire.paths import CONTROLLER
from rebalance_lab.zkclient.pipelined import PipelinedClient

SETTINGS = {"moment": "failover", "form": "0.8.2"}


async def depose_itself(client: PipelinedClient) -> None:
    there = (await client.ask(lambda session: session.exists(CONTROLLER))).value
    if there is not None and there.ephemeral_owner == client.session.session_id:
        await client.ask(lambda session: session.delete(CONTROLLER))


def honest(seed: int) -> History:
    return trial("zombie-controller", seed, settings=SETTINGS)


def false(seed: int) -> History:
    with patch.object(controller, "depose", depose_itself):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim="E3",
    check="deposed_successor",
    world="The failover of the zombie fails after its successor was elected, and it gives up; but it deletes "
    "/controller only if its own session has created it.",
    false=false,
    honest=honest,
)
