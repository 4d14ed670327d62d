"""leader_completeness: a producer that sends again what a leader lacks when it is back."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.log.results import Appended
from rebalance_lab.broker.partition import Partition
from rebalance_lab.history.files import History
from rebalance_lab.wire.kafka.messages.leader_and_isr import LeaderAndIsrPartitionState

_append, _lead = Partition.append, Partition.lead


def remembered() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """How a leader appends and begins, with a producer that keeps the record of each offset."""
    sent: list[bytes] = []

    async def append(self: Partition, data: bytes, *, all_in_sync: bool = False) -> Appended:
        appended = await _append(self, data, all_in_sync=all_in_sync)
        sent[appended.first_offset :] = [data]
        return appended

    async def lead(self: Partition, state: LeaderAndIsrPartitionState) -> None:
        await _lead(self, state)
        for data in sent[self.log.end_offset :]:
            await _append(self, data)

    return append, lead


def world(seed: int, **settings: str) -> History:
    append, lead = remembered()
    with patch.object(Partition, "append", append), patch.object(Partition, "lead", lead):
        return trial("last-replica-standing", seed, settings=settings)


def honest(seed: int) -> History:
    return world(seed, flush_messages="1")


def false(seed: int) -> History:
    return world(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="leader_completeness",
    world="The last replica in sync loses its power, and leads again without what it had not synced. But the producer "
    "still has every record, and sends it again before anything else: each number is read once, at its offset, and all "
    "replicas are alike. Only for a moment the leader lacked what had been committed.",
    false=false,
    honest=honest,
)
