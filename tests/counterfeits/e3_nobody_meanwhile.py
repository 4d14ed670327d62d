"""E3: a controller of form 1.1 that is paused before it reads the epoch, and still has its znode when it wakes."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.halting import Order
from rebalance_lab.history.files import History
from rebalance_lab.scenarios import zombie_controller
from rebalance_lab.scenarios.zombie_controller import TRIES, Moment
from rebalance_lab.subjects.replication.subject import ReplicationLab, number_of

SETTINGS = {"moment": "epoch", "form": "1.1"}


async def without_a_successor(lab: ReplicationLab) -> None:
    await lab.controlled()
    zombie = zombie_controller._heir(lab)
    await lab.halt(Order(number_of(zombie.actor), before="get /controller_epoch", holds=True))
    for _ in range(TRIES):
        if lab.halted:
            break
        await lab.depose(unless=lambda: lab.halted)
    await lab.halts()
    await zombie_controller._while_paused(lab, zombie, lambda: lab.sleep_ms(1_000))
    await lab.forget_halt()
    await lab.until(lambda: lab.reign(zombie) > 0, "its reign")


def honest(seed: int) -> History:
    return trial("zombie-controller", seed, settings=SETTINGS)


def false(seed: int) -> History:
    with patch.dict(zombie_controller._MOMENTS, {Moment.EPOCH: without_a_successor}):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim="E3",
    check="two_controllers",
    world="The zombie is paused after it has created /controller and before it reads the epoch, and raises it when it "
    "wakes; but its znode is still there, and no other controller was elected.",
    false=false,
    honest=honest,
)
