"""needless_election: a controller that takes a follower out of the ISR once more when it has just joined again."""

from collections.abc import Callable
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from controller.leader_election import without_replicas
from controller.machine import ControllerMachine
from controller.stimuli import Instruction, Purpose, StatesWritten, WriteStates
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.files import History

_isr_written = ControllerMachine._isr_written


def once_more() -> Callable[[ControllerMachine, StatesWritten], list[Instruction]]:
    dropped: set[TopicPartition] = set()

    def written(self: ControllerMachine, result: StatesWritten) -> list[Instruction]:
        before = {each: found.leader_and_isr.isr for each, found in self.cluster.stored.items()}
        out = _isr_written(self, result)
        for each, stored in result.written.items():
            joined = [broker for broker in stored.leader_and_isr.isr if broker not in before[each]]
            without = without_replicas(stored.leader_and_isr, joined)
            if joined and without is not None and each not in dropped:
                dropped.add(each)
                self._isr_removals._under_way += 1
                out.append(WriteStates({each: (without, self.cluster.stored[each].version)}, Purpose.OFFLINE))
        return out

    return written


def honest(seed: int) -> History:
    return trial("duties", seed, settings={"duty": "broker-fails", "kill_at": "0"})


def false(seed: int) -> History:
    with patch.object(ControllerMachine, "_isr_written", once_more()):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="needless_election",
    world="A broker was dead, has come back and joined the ISR. The controller takes it out as if it had died only "
    "now, and it joins again: each step is seen after a death, but for the second time.",
    false=false,
    honest=honest,
)
