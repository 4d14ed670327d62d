"""handover: brokers that wait, before each of them stands, for another one to be faster."""

from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from controller import controller
from controller.controller import Controller
from controller.election import Elected
from controller.election import elect as _elect
from rebalance_lab.history.files import History
from rebalance_lab.kernel import Kernel

_init = Controller.__init__

WAIT_MS = 1200


def honest(seed: int) -> History:
    return trial("controller-race", seed, settings={"calm_ms": "4000"})


def false(seed: int) -> History:
    kernels: list[Kernel] = []

    def init(self: Controller, tasks: Kernel, *args: Any, **more: Any) -> None:
        kernels.append(tasks)
        _init(self, tasks, *args, **more)

    async def elect(*args: Any, **more: Any) -> Elected:
        await kernels[-1].sleep(WAIT_MS * 1000)
        return await _elect(*args, **more)

    with ExitStack() as stack:
        stack.enter_context(patch.object(Controller, "__init__", init))
        stack.enter_context(patch.object(controller, "elect", elect))
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="handover",
    world="When the controller goes, all brokers notice at once, look, and stand; one is elected, the former "
    "controller has resigned, and nobody reigns beside it; but each gives way to the others for a while first.",
    false=false,
    honest=honest,
)
