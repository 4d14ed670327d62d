"""deposed_successor: a controller that gives up, with a condition that every `/controller` meets."""

from contextlib import suppress
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from controller.controller import FAILURE_PAUSE_MS, Controller
from controller.election import Elected
from rebalance_lab.history.files import History
from rebalance_lab.wire.paths import CONTROLLER
from rebalance_lab.world.errors import BadVersion, NoNode


async def by_version(self: Controller, _elected: Elected) -> None:
    """As `_step_down`, but what it checks is the version of `/controller`."""
    await self._tasks.sleep(FAILURE_PAUSE_MS * 1000)
    with suppress(BadVersion, NoNode):
        await self._client.ask(lambda session: session.delete(CONTROLLER, version=0))


def honest(seed: int) -> History:
    return trial("zombie-controller", seed, settings={"moment": "failover"})


def false(seed: int) -> History:
    with patch.object(Controller, "_step_down", by_version):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="deposed_successor",
    world="A controller that gives up deletes /controller only if it has the version with which it was created, 0. "
    "That of its successor has the same.",
    false=false,
    honest=honest,
)
