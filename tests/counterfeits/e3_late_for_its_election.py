"""E3: a controller of form 1.1 that is paused before it creates /controller."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from rebalance_lab.scenarios import zombie_controller
from rebalance_lab.scenarios.zombie_controller import Moment
from rebalance_lab.subjects.replication.subject import ReplicationLab

SETTINGS = {"moment": "election", "form": "1.1"}


async def before_both_steps(lab: ReplicationLab) -> None:
    await zombie_controller._elected(lab, zombie_controller._heir(lab), "create /controller,")


def honest(seed: int) -> History:
    return trial("zombie-controller", seed, settings=SETTINGS)


def false(seed: int) -> History:
    with patch.dict(zombie_controller._MOMENTS, {Moment.ELECTION: before_both_steps}):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim="E3",
    check="two_controllers",
    world="The zombie is paused as it stands for election, and another controller is elected meanwhile; but it has not "
    "created /controller yet, and finds that of its successor when it wakes.",
    false=false,
    honest=honest,
)
