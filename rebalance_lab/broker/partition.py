"""One replica of a partition: what it does now, and up to where its records are committed (`kafka.cluster.Partition`).

Followers do not fetch yet, so only a replica that is in sync with itself alone commits anything.
"""

from __future__ import annotations

from enum import Enum

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.log.errors import LogError
from rebalance_lab.broker.log.log import Appended, PartitionLog
from rebalance_lab.broker.refused import Refused
from rebalance_lab.kernel import Future, Kernel
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.leader_and_isr import LeaderAndIsrPartitionState

#: A request that does not name the leader epoch that its sender knows.
NO_EPOCH = -1


class ReplicaRole(Enum):
    """- IDLE: no controller has said anything yet.
    - LEADER, FOLLOWER: as the controller has said.
    - OFFLINE: its log has failed. Only a new start of the broker helps.
    - STOPPED: the controller has stopped it. A new replica takes its place if it is needed again.
    """

    IDLE = "idle"
    LEADER = "leader"
    FOLLOWER = "follower"
    OFFLINE = "offline"
    STOPPED = "stopped"


_ANY = frozenset({ReplicaRole.LEADER, ReplicaRole.FOLLOWER, ReplicaRole.OFFLINE, ReplicaRole.STOPPED})

#: role -> the roles it may change to. A leader of a later epoch is a leader again.
ROLE_TRANSITIONS: dict[ReplicaRole, frozenset[ReplicaRole]] = {
    ReplicaRole.IDLE: _ANY,
    ReplicaRole.LEADER: _ANY,
    ReplicaRole.FOLLOWER: _ANY,
    ReplicaRole.OFFLINE: frozenset({ReplicaRole.STOPPED}),
    ReplicaRole.STOPPED: frozenset(),
}


class IllegalRoleTransition(Exception):
    """A change of role that the table does not have: a mistake in the broker."""


class Partition:
    """A replica on this broker. `progress` is done at the next change of its role, its log's end or its high watermark;
    another future follows it."""

    def __init__(self, tasks: Kernel, broker_id: int, partition: TopicPartition, log: PartitionLog) -> None:
        self.partition = partition
        self.log = log
        self.role = ReplicaRole.IDLE
        self.leader_epoch = NO_EPOCH
        self.isr: tuple[int, ...] = ()
        self.progress: Future[None] = Future(("progress of", str(log)))
        self._broker_id = broker_id
        self._changing = tasks.lock(f"role of {partition.topic}-{partition.partition}")

    # -- roles ------------------------------------------------------------------------------

    async def lead(self, state: LeaderAndIsrPartitionState) -> None:
        """Lead in a new epoch, which begins at the log's end. Raises LogFailed."""
        async with self._changing:
            await self.log.start_epoch(state.leader_epoch)
            self._change(ReplicaRole.LEADER)
            self.leader_epoch, self.isr = state.leader_epoch, state.isr
            self._advance()

    async def follow(self, state: LeaderAndIsrPartitionState) -> None:
        """Take no more records from clients."""
        async with self._changing:
            self._change(ReplicaRole.FOLLOWER)
            self.leader_epoch, self.isr = state.leader_epoch, state.isr

    async def stop(self) -> None:
        """No request reaches it any more."""
        async with self._changing:
            self._change(ReplicaRole.STOPPED)

    def _change(self, role: ReplicaRole) -> None:
        if role not in ROLE_TRANSITIONS[self.role]:
            raise IllegalRoleTransition(f"{self.log}: from {self.role.value} to {role.value}")
        self.role = role
        self._progressed()

    # -- what leaders do --------------------------------------------------------------------

    def check_leader(self, known_epoch: int = NO_EPOCH) -> None:
        """Raises Refused unless this replica leads, in the epoch that the sender of a request knows."""
        if self.role is ReplicaRole.OFFLINE:
            raise Refused(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.log} is offline: {self.log.failure}")
        if known_epoch not in (NO_EPOCH, self.leader_epoch):
            code = ErrorCode.FENCED_LEADER_EPOCH if known_epoch < self.leader_epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
            raise Refused(code, f"leader epoch {known_epoch} was asked for, {self.leader_epoch} is the current one")
        if self.role is not ReplicaRole.LEADER:
            raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker does not lead {self.partition}")

    async def append(self, data: bytes, *, min_in_sync: int = 0) -> Appended:
        """Write a client's batch. `min_in_sync`: how many replicas must be in sync. Raises Refused and LogErrors."""
        async with self._changing:
            self.check_leader()
            if len(self.isr) < min_in_sync:
                raise Refused(
                    ErrorCode.NOT_ENOUGH_REPLICAS,
                    f"The size of the current ISR {self.isr} is insufficient to satisfy the min.isr requirement of "
                    f"{min_in_sync} for partition {self.partition.topic}-{self.partition.partition}",
                )
            try:
                appended = await self.log.append(data, self.leader_epoch)
            except LogError:
                if self.log.failure is not None:
                    self._change(ReplicaRole.OFFLINE)
                raise
            self._advance()
            return appended

    async def committed(self, offset: int, epoch: int) -> None:
        """Wait until the record at `offset`, written in leader epoch `epoch`, is committed. Raises Refused if this
        replica does not lead in that epoch any more."""
        while True:
            if (self.role, self.leader_epoch) != (ReplicaRole.LEADER, epoch):
                raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker does not lead {self.partition} any more")
            if self.log.high_watermark > offset:
                return
            await self.progress

    def _advance(self) -> None:
        """Move the high watermark to where every in-sync replica is. Where the others are is not known."""
        if self.isr == (self._broker_id,):
            self.log.high_watermark = self.log.end_offset
        self._progressed()

    def _progressed(self) -> None:
        progress, self.progress = self.progress, Future(("progress of", str(self.log)))
        progress.set(None)
