"""unequal_views: a controller that lets a follower join the ISR, tells everyone, and forgets it."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from controller.cluster import Stored
from controller.machine import ControllerMachine
from controller.stimuli import Instruction, StatesWritten
from rebalance_lab.history.files import History

_isr_written = ControllerMachine._isr_written


def forgetful(self: ControllerMachine, result: StatesWritten) -> list[Instruction]:
    before = dict(self.cluster.stored)
    instructions = _isr_written(self, result)
    for partition, stored in self.cluster.stored.items():
        known = before[partition].leader_and_isr
        if partition in result.written and len(stored.leader_and_isr.isr) > len(known.isr):
            self.cluster.stored[partition] = Stored(known, stored.controller_epoch, stored.version)
    return instructions


def honest(seed: int) -> History:
    return trial("controller-failover", seed, settings={})


def false(seed: int) -> History:
    with patch.object(ControllerMachine, "_isr_written", forgetful):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="unequal_views",
    world="The controller writes each ISR that a leader asks for, answers the leader and tells all brokers, so that "
    "ZooKeeper and everyone who is asked agree; but it does not remember who has joined, and elects without them.",
    false=false,
    honest=honest,
)
