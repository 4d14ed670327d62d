"""The position of a consumer that reads one partition along (`SubscriptionState`, `FetchCollector`, Kafka 3.9.1).

A log can be truncated below the position: a replica that is not in sync leads, or committed records were lost. Then it
is written anew. A consumer that knows offsets only, as before Kafka 2.3, notices nothing if the log is as long as
before when it fetches next, and has missed what was written below its position. If the log is shorter, the position is
out of range, and the consumer goes on where `auto.offset.reset` says: at the log's end, which may miss records, or at
its beginning.

With leader epochs (KIP-320) a position also names the leader epoch of the record before it. When the leader epoch has
changed, the consumer asks the leader where that epoch ended, before it fetches. If it ended below the position, the
consumer goes back to its end. A leader refuses a fetch that names another leader epoch than its own, so the consumer
hears of each change.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rebalance_lab.client.cluster import ClusterClient, RefusedByBroker
from rebalance_lab.client.records import ReplicaRecord, end_of_epoch, fetch_committed, offset_at
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.sentinels import EARLIEST, LATEST, NO_LEADER_EPOCH


class Reset(StrEnum):
    """Where a consumer goes whose position is not in the log (auto.offset.reset)."""

    EARLIEST = "earliest"
    LATEST = "latest"


class Cause(StrEnum):
    """Why a position was moved."""

    OUT_OF_RANGE = "out-of-range"  # it is not in the leader's log
    TRUNCATED = "truncated"  # the log ends its last epoch below it


@dataclass(frozen=True, slots=True)
class Position:
    """`offset`: of the next record. `leader_epoch`: of the record before it; NO_LEADER_EPOCH: unknown."""

    offset: int
    leader_epoch: int = NO_LEADER_EPOCH


@dataclass(frozen=True, slots=True)
class Moved:
    """The position was moved, and nothing was read."""

    before: int
    offset: int
    cause: Cause


class Consumer:
    """Reads a partition from its beginning on. `epochs`: whether it names its leader epoch when it fetches.
    `validates`: whether it also asks where its last epoch ended."""

    def __init__(self, topic: str, partition: int, *, epochs: bool, validates: bool, reset: Reset) -> None:
        self.position = Position(0)
        self._topic = topic
        self._partition = partition
        self._epochs = epochs
        self._validates = validates
        self._reset = reset
        #: The leader epoch in which the position is known to be in the log.
        self._valid_in = NO_LEADER_EPOCH

    async def poll(self, cluster: ClusterClient, *, max_wait_ms: int) -> tuple[ReplicaRecord, ...] | Moved:
        """What is committed from the position on, which moves behind it; nothing if the log ends there, and nothing
        comes in time. Or the position has been moved.

        Raises NoBroker, NotServed and RefusedByBroker, and InvalidBatch for bytes that are no batch.
        """
        current = NO_LEADER_EPOCH
        if self._epochs:
            current = await cluster.leader_epoch(self._topic, self._partition)
            moved = await self._validated(cluster, current)
            if moved is not None:
                return moved
        try:
            found = await fetch_committed(
                cluster,
                self._topic,
                self._partition,
                self.position.offset,
                current_epoch=current,
                max_wait_ms=max_wait_ms,
            )
        except RefusedByBroker as refused:
            if refused.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            return await self._reset_by(cluster, Cause.OUT_OF_RANGE)
        if found:
            self.position = Position(found[-1].offset + 1, found[-1].leader_epoch)
        return found

    async def _validated(self, cluster: ClusterClient, current: int) -> Moved | None:
        """Ask whether the leader of a later epoch has the record before the position, and go back if not
        (`SubscriptionState.maybeCompleteValidation`)."""
        if current == self._valid_in:
            return None
        before = self.position
        if self._validates and before.leader_epoch != NO_LEADER_EPOCH:
            end = await end_of_epoch(cluster, self._topic, self._partition, before.leader_epoch, current_epoch=current)
            if end is None:
                return await self._reset_by(cluster, Cause.TRUNCATED)
            if end.offset < before.offset:
                self.position = Position(end.offset, end.leader_epoch)
        self._valid_in = current
        return None if self.position == before else Moved(before.offset, self.position.offset, Cause.TRUNCATED)

    async def _reset_by(self, cluster: ClusterClient, cause: Cause) -> Moved:
        before = self.position.offset
        where = EARLIEST if self._reset is Reset.EARLIEST else LATEST
        self.position = Position(await offset_at(cluster, self._topic, self._partition, where))
        return Moved(before, self.position.offset, cause)
