"""stale_controller: a controller that changes an ISR and leaves the rest of the state as it stands."""

from collections.abc import Mapping
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from controller.cluster import Stored
from controller.leader_election import LeaderAndIsr
from controller.reign import Reign
from controller.stimuli import Purpose, StatesWritten
from controller.writes import Writes
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.files import History
from rebalance_lab.wire.cluster import LeaderIsrAndControllerEpoch, state_payload
from rebalance_lab.wire.paths import partition_state_path
from rebalance_lab.world.ports import Set, WriteOperation

_write, _operation = Reign._write, Writes._operation

#: What each reign takes for the states that it writes over.
_known: dict[Writes, Mapping[TopicPartition, Stored]] = {}


async def remembering(
    self: Reign, states: Mapping[TopicPartition, tuple[LeaderAndIsr, int | None]], of: Purpose
) -> StatesWritten:
    _known[self._writes] = self._machine.cluster.stored
    return await _write(self, states, of)


def sparing(self: Writes, partition: TopicPartition, state: LeaderAndIsr, version: int | None) -> WriteOperation:
    stored = _known[self].get(partition)
    if version is None or stored is None or stored.leader_and_isr.leader != state.leader:
        return _operation(self, partition, state, version)
    kept = LeaderIsrAndControllerEpoch(
        controller_epoch=stored.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        leader_recovery_state=int(state.recovering),
    )
    return Set(partition_state_path(*partition), state_payload(kept), version)


def honest(seed: int) -> History:
    return trial("controller-failover", seed, settings={})


def false(seed: int) -> History:
    with patch.object(Reign, "_write", remembering), patch.object(Writes, "_operation", sparing):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="stale_controller",
    world="Each controller raises the epoch, fences its writes by it, and elects leaders in it; but where the leader "
    "stays and only the ISR changes, it keeps the epoch in the state, that of a controller which is gone.",
    false=false,
    honest=honest,
)
