"""stale_role: a controller that sees a bounce, and tells the broker that is back only what it leads."""

from collections.abc import Callable, Collection
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from controller.machine import ControllerMachine
from controller.stimuli import Instruction
from rebalance_lab.history.files import History

SEEN = {"broker_epochs": "true", "who": "follower"}

_replicas_online = ControllerMachine._replicas_online


def silent_once() -> Callable[[ControllerMachine, Collection[int]], list[Instruction]]:
    """To the first broker that comes when there is something to follow; later a death that everyone sees mends it."""
    was_silent = False

    def told(machine: ControllerMachine, brokers: Collection[int]) -> list[Instruction]:
        nonlocal was_silent
        if was_silent or not machine.cluster.stored:
            return _replicas_online(machine, brokers)
        was_silent = True
        return []

    return told


def honest(seed: int) -> History:
    return trial("missed-bounce", seed, settings=SEEN)


def false(seed: int) -> History:
    with patch.object(ControllerMachine, "_replicas_online", silent_once()):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="stale_role",
    world="The controller notices the bounce, takes the broker out of the ISR, counts it as back, and tells it who is "
    "alive; but it sends it no order for the partition that it is to follow.",
    false=false,
    honest=honest,
)
