"""E4: a controller that changes a state by deleting its znode and creating it anew."""

from collections.abc import Mapping
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from controller.cluster import Stored
from controller.leader_election import LeaderAndIsr
from controller.writes import Writes
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.files import History
from rebalance_lab.wire.paths import partition_state_path
from rebalance_lab.world.ports import Delete

_write = Writes.write

States = Mapping[TopicPartition, tuple[LeaderAndIsr, int | None]]


async def anew(self: Writes, states: States) -> tuple[dict[TopicPartition, Stored], list[TopicPartition]]:
    changed: dict[TopicPartition, tuple[LeaderAndIsr, int | None]] = dict(states)
    for each, (state, version) in states.items():
        if version is not None and each.topic == "t2":
            await self._fenced([Delete(partition_state_path(*each), version)])
            changed[each] = (state, None)
    return await _write(self, changed)


def honest(seed: int) -> History:
    return trial("duties", seed, settings={"duty": "broker-fails", "kill_at": "0"})


def false(seed: int) -> History:
    with patch.object(Writes, "write", anew):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim="E4",
    check="duty_target",
    world="A broker fails, and others lead what it led. But the states were deleted and created anew: for a moment "
    "nobody could have told who is in sync, and versions begin at 0 again.",
    false=false,
    honest=honest,
)
