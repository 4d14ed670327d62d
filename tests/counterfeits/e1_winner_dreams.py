"""E1: a winner that does not reign, and whose session ends before a second is over."""

from typing import Any
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from controller.controller import Controller
from controller.election import ControllerMoved, Elected
from rebalance_lab.history.files import History

_reign = Controller._reign


def honest(seed: int) -> History:
    return trial("controller-race", seed, settings={"calm_ms": "600", "messages": "20"})


def false(seed: int) -> History:
    dreamed: set[int] = set()

    async def dreams(self: Controller, elected: Elected) -> None:
        """The second winner does nothing."""
        if elected.epoch != 2 or dreamed:
            await _reign(self, elected)
            return
        dreamed.add(elected.epoch)
        await self._tasks.flag("nothing").wait()
        raise ControllerMoved("it dreams")

    patched: Any = dreams
    with patch.object(Controller, "_reign", patched):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim="E1",
    check="two_controllers",
    world="Each election is one transaction with an epoch of its own, and no broker takes itself for a controller that "
    "it is not; but one winner reigns not at all, and its session ends before anybody can call it silent.",
    false=false,
    honest=honest,
)
