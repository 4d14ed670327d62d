"""unavailable_partition: a broker that returns, and stands for election after it has made itself ready for long."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from controller.controller import Controller
from controller.election import Elected
from rebalance_lab.history.files import History

_elect = Controller._elect

WAIT_MS = 1500


async def late(self: Controller) -> Elected:
    await self._tasks.sleep(WAIT_MS * 1000)
    return await _elect(self)


def honest(seed: int) -> History:
    return trial("all-replicas-down", seed, settings={"unclean": "true"})


def false(seed: int) -> History:
    with patch.object(Controller, "_elect", late):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="unavailable_partition",
    world="The first replica that returns leads, as the setting allows, and the controller elects it as soon as it "
    "controls. But that is the same broker, and it lets time pass before it stands for controller.",
    false=false,
    honest=honest,
)
