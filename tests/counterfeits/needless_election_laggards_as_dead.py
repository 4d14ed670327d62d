"""needless_election: a controller that treats a follower that the leader drops as if it had died."""

from collections.abc import Sequence
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from controller.leader_election import without_replicas
from controller.machine import ControllerMachine
from controller.stimuli import AnswerIsr, Instruction, IsrAsked, Purpose, Stimulus, WriteStates
from rebalance_lab.history.files import History
from rebalance_lab.wire.kafka.error_codes import ErrorCode

#: A shorter log than by default, and as many looks at it.
SHORT = {"lacks": "400", "messages": "1000", "lag_ms": "600"}

_handle = vars(ControllerMachine)["handle"]


def handle(self: ControllerMachine, stimulus: Stimulus) -> Sequence[Instruction]:
    if not isinstance(stimulus, IsrAsked):
        return _handle.__get__(self)(stimulus)
    states = {}
    for partition, wanted in stimulus.wanted.items():
        stored = self.cluster.stored[partition]
        gone = [each for each in stored.leader_and_isr.isr if each not in wanted.isr]
        changed = without_replicas(stored.leader_and_isr, gone)
        if gone and changed is not None:
            states[partition] = changed, stored.version
    if not states:
        return _handle.__get__(self)(stimulus)
    self._isr_removals._under_way += 1
    results = dict.fromkeys(states, ErrorCode.NEW_LEADER_ELECTED)
    return [WriteStates(states, Purpose.OFFLINE), AnswerIsr(stimulus, ErrorCode.NONE, results)]


def honest(seed: int) -> History:
    return trial("isr-flap", seed, settings=SHORT)


def false(seed: int) -> History:
    with patch.object(ControllerMachine, "handle", handle):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="needless_election",
    world="A follower joins before it has caught up, and the leader has it dropped again and again. But the controller "
    "writes each smaller ISR in a new leader epoch, as for a dead replica, so no leader has dropped anything.",
    false=false,
    honest=honest,
)
