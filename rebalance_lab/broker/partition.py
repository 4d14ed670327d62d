"""One replica of a partition: its role, and what leaders and followers do with its log (`kafka.cluster.Partition`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.log.epochs import EpochEnd
from rebalance_lab.broker.log.errors import LogError
from rebalance_lab.broker.log.log import PartitionLog
from rebalance_lab.broker.log.results import Appended
from rebalance_lab.broker.observe import Observe, unobserved
from rebalance_lab.broker.refused import Refused
from rebalance_lab.broker.replication.fetches import Conclusion, conclude
from rebalance_lab.broker.replication.isr_changes import Change, IsrOutcome, IsrWritten
from rebalance_lab.broker.replication.leadership import (
    Lag,
    Leadership,
    epoch_error,
    followers_high_watermark,
)
from rebalance_lab.broker.replication.rules import ReplicationRules
from rebalance_lab.kernel import Future, Kernel
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.leader_and_isr import LeaderAndIsrPartitionState
from rebalance_lab.wire.kafka.sentinels import NO_LEADER_EPOCH


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaContext:
    """What the replicas of a broker share.

    - `may_be_in_sync(broker)`: whether a broker is live, as the controller has said last.
    - `change_isr`: takes a change of the ISR that a leader wants written.
    - `observe`: is called with what trials record.
    - `refuses_before_append`: False plants a bug: a batch is refused for too small an ISR after it was appended.
    - `assumes_whole_isr`: False plants a bug: a new leader leaves the last of the ISR out.
    - `ignores_min_isr`: True plants a bug: it goes on as if `min.insync.replicas` were 1.
    - `commits_alone`: True plants a bug: a leader commits what it has written, whatever its followers have.
    - `counts_diverging`: True plants a bug: see `fetches.conclude`.
    - `leads_as_first_of_isr`: True plants a bug: it leads if it stands first in the ISR, whoever was elected.
    - `leader_grace`: see `Leadership`.
    - `joins_caught_up`: see `Leadership`.
    - `commits_under_min_isr`: the high watermark rises also while too few are in sync, as up to Kafka 3.6.
    - `keeps_fetchers`: True plants a bug: a follower that becomes the leader goes on fetching.
    - `fences_orders`: False: it obeys controllers of earlier epochs than one that it has heard of.
    - `fences_lives`: False: it obeys orders for an earlier registration of the broker.
    - `accepts_newer_epochs`: False: it refuses orders for a later registration than it has heard of.
    - `obeys_late_orders`: True plants a bug: it obeys the last update of a deposed controller after its successor's.
    - `leaders_from_metadata`: a follower looks for its leader among the brokers of which the broker has metadata.
    - `forgets_followers`: a leader that has missed a leader epoch forgets what it knew of its followers.
    - `obeys_after_us`: how long a leader takes to obey an order for a partition that it leads already.
    """

    tasks: Kernel
    broker_id: int
    rules: ReplicationRules
    lag: Lag
    may_be_in_sync: Callable[[int], bool]
    change_isr: Callable[[Change], None]
    observe: Observe = unobserved
    refuses_before_append: bool = True
    assumes_whole_isr: bool = True
    ignores_min_isr: bool = False
    commits_alone: bool = False
    counts_diverging: bool = False
    leads_as_first_of_isr: bool = False
    leader_grace: bool = True
    joins_caught_up: bool = False
    commits_under_min_isr: bool = False
    keeps_fetchers: bool = False
    fences_orders: bool = True
    fences_lives: bool = True
    accepts_newer_epochs: bool = True
    obeys_late_orders: bool = False
    leaders_from_metadata: bool = False
    forgets_followers: bool = False
    obeys_after_us: int = 0

    def leads_by(self, state: LeaderAndIsrPartitionState) -> bool:
        """Whether this broker leads by an order."""
        return self.broker_id in (state.isr[:1] if self.leads_as_first_of_isr else [state.leader])


class Partition:
    """A replica on this broker. `progress` is done at the next change of its role, its log's end or its high watermark;
    another future follows it. `leader`: the broker that leads; None if it is not known. `controller_epoch`: of the
    controller that made it the leader."""

    def __init__(self, around: ReplicaContext, partition: TopicPartition, log: PartitionLog) -> None:
        self.partition = partition
        self.log = log
        self.role = ReplicaRole.IDLE
        self.leader_epoch = NO_LEADER_EPOCH
        self.controller_epoch = 0
        self.leader: int | None = None
        #: While this replica leads.
        self.leadership: Leadership | None = None
        #: The epoch since when it has led without a break, as far as it knows.
        self._led_since = NO_LEADER_EPOCH
        self.progress: Future[None] = Future(("progress of", str(log)))
        #: While it writes, and perhaps syncs, a client's batch.
        self._appending = False
        self._around = around
        self._changing = around.tasks.lock(f"role of {partition.topic}-{partition.partition}")

    # -- roles ------------------------------------------------------------------------------

    async def lead(self, state: LeaderAndIsrPartitionState) -> None:
        """Lead in a new epoch, which begins at the log's end. Raises LogFailed."""
        around = self._around
        async with self._changing:
            if around.rules.starts_epochs:
                await self.log.start_epoch(state.leader_epoch)
            if self.leadership is None:
                self._led_since = state.leader_epoch
            self.leadership = Leadership(
                around.broker_id,
                state.replicas,
                state.isr if around.assumes_whole_isr else state.isr[: max(1, len(state.isr) - 1)],
                leader_epoch=state.leader_epoch,
                partition_epoch=state.partition_epoch,
                start_offset=self.log.end_offset,
                now_us=around.tasks.now_us(),
                lag=around.lag,
                may_be_in_sync=around.may_be_in_sync,
                joins_from_epoch_start=around.rules.joins_from_epoch_start,
                joins_caught_up=around.joins_caught_up,
                before=self.leadership,
                forgets_if_missed=around.forgets_followers,
                grace=around.leader_grace,
            )
            self._change(ReplicaRole.LEADER)
            self.leader_epoch, self.leader = state.leader_epoch, around.broker_id
            self.controller_epoch = state.controller_epoch
            self._observe(
                "leads",
                leader_epoch=state.leader_epoch,
                controller_epoch=state.controller_epoch,
                isr=self.leadership.isr,
                replicas=self.leadership.replicas,
                end_offset=self.log.end_offset,
                high_watermark=self.log.high_watermark,
            )
            self._advance(self.leadership)

    async def follow(self, state: LeaderAndIsrPartitionState) -> None:
        """Take no more records from clients."""
        async with self._changing:
            self._change(ReplicaRole.FOLLOWER)
            self.leadership = None
            self.leader_epoch, self.leader = state.leader_epoch, state.leader
            self._observe(
                "follows",
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                end_offset=self.log.end_offset,
                high_watermark=self.log.high_watermark,
            )

    async def stop(self) -> None:
        """No request reaches it any more."""
        async with self._changing:
            self._change(ReplicaRole.STOPPED)
            self.leadership = None
            self._observe("replica-ended", role=self.role.value)

    def _change(self, role: ReplicaRole) -> None:
        if role not in ROLE_TRANSITIONS[self.role]:
            raise IllegalRoleTransition(f"{self.log}: from {self.role.value} to {role.value}")
        self.role = role
        self._progressed()

    def _check_log(self) -> None:
        """After an error of the log: if it has failed, the replica is offline."""
        if self.log.failure is not None and self.role is not ReplicaRole.OFFLINE:
            self.leadership = None
            self._change(ReplicaRole.OFFLINE)
            self._observe("replica-ended", role=self.role.value)

    def _observe(self, event: str, **detail: object) -> None:
        self._around.observe(event, self.partition, detail)

    # -- what leaders do --------------------------------------------------------------------

    def check_leader(self, known_epoch: int = NO_LEADER_EPOCH) -> Leadership:
        """The leadership. Raises Refused unless this replica leads, in the epoch that the sender of a request knows."""
        if self.role is ReplicaRole.OFFLINE:
            raise Refused(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.log} is offline: {self.log.failure}")
        code = epoch_error(known_epoch, self.leader_epoch)
        if code is not None:
            raise Refused(code, f"leader epoch {known_epoch} was asked for, {self.leader_epoch} is the current one")
        if self.leadership is None:
            raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker does not lead {self.partition}")
        return self.leadership

    async def append(self, data: bytes, *, all_in_sync: bool = False) -> Appended:
        """Write a client's batch. `all_in_sync`: only if as many replicas are in sync as `min.insync.replicas` asks
        for. Raises Refused and LogErrors."""
        async with self._changing:
            leadership = self.check_leader()
            if all_in_sync and self._around.refuses_before_append:
                self._check_min_isr(leadership)
            self._appending = True
            try:
                appended = await self.log.append(data, self.leader_epoch)
            except LogError:
                self._check_log()
                raise
            finally:
                self._appending = False
            if not appended.duplicate:
                self._observe(
                    "appended",
                    leader_epoch=self.leader_epoch,
                    first=appended.first_offset,
                    last=appended.last_offset,
                )
            self._advance(leadership)
            if all_in_sync and not self._around.refuses_before_append:
                self._check_min_isr(leadership)
            return appended

    @property
    def _min_isr(self) -> int:
        return 1 if self._around.ignores_min_isr else self.log.config.min_insync_replicas

    def _check_min_isr(self, leadership: Leadership) -> None:
        """Raises Refused if fewer replicas are in sync than `min.insync.replicas` asks for."""
        min_isr = self._min_isr
        if leadership.is_under(min_isr):
            raise Refused(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"The size of the current ISR {leadership.isr} is insufficient to satisfy the min.isr requirement "
                f"of {leadership.effective_min_isr(min_isr)} for partition "
                f"{self.partition.topic}-{self.partition.partition}",
            )

    def is_committed(self, offset: int, epoch: int) -> bool:
        """Whether the record at `offset`, written in leader epoch `epoch`, is committed. Raises Refused if this replica
        has followed since then, so that the record may be another, and if it is committed and too few replicas are in
        sync. An epoch that begins while it leads does not matter (`Partition.checkEnoughReplicasReachOffset`,
        3.9.1)."""
        leadership = self.leadership
        if leadership is None or epoch < self._led_since:
            raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker does not lead {self.partition} any more")
        if self.log.high_watermark <= offset:
            return False
        if len(leadership.maximal_isr) < leadership.effective_min_isr(self._min_isr):
            raise Refused(
                ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
                f"the ISR {leadership.isr} has fallen below min.insync.replicas since the append",
            )
        return True

    def end_of_epoch(self, leader_epoch: int) -> EpochEnd:
        """The answer to OffsetForLeaderEpoch."""
        return self.log.end_of_epoch(leader_epoch, before_first=self._around.rules.starts_epochs)

    def conclude(self, offset: int, last_epoch: int) -> Conclusion:
        """What follows of a fetch from `offset` on. `last_epoch`: that of the reader's last record."""
        log = self.log
        return conclude(
            offset,
            last_epoch,
            start_offset=log.start_offset,
            end_offset=log.end_offset,
            end_of=log.end_of_epoch,
            counts_diverging=self._around.counts_diverging,
        )

    def follower_fetched(self, follower: int, offset: int, leader_end: int) -> None:
        """A follower has asked for what comes from `offset` on, when the log ended at `leader_end`, and it counts."""
        leadership = self.leadership
        if leadership is None or not leadership.is_follower(follower):
            return
        log = self.log
        joined = leadership.counted(
            follower,
            offset,
            leader_end=leader_end,
            high_watermark=log.high_watermark,
            now_us=self._around.tasks.now_us(),
            min_isr=self._min_isr,
        )
        if joined is not None:
            self._ask_for(leadership, joined)
        self._advance(leadership)

    def drop_laggards(self) -> None:
        """Ask for an ISR without the followers that have fallen behind."""
        leadership = self.leadership
        if leadership is None:
            return
        kept = leadership.without_laggards(self.log.end_offset, self._around.tasks.now_us())
        if kept is not None:
            leadership.proposed = kept
            self._ask_for(leadership, kept)

    async def isr_answered(self, leadership: Leadership, outcome: IsrOutcome) -> None:
        """What came of a change of the ISR."""
        async with self._changing:
            if self.leadership is not leadership:
                return  # the controller has given it another role meanwhile
            if isinstance(outcome, IsrWritten):
                leadership.committed(outcome.isr, outcome.partition_epoch)
            elif not outcome.may_be_written:
                leadership.proposed = None
            self._isr_assumed(leadership)
            self._advance(leadership)

    def _ask_for(self, leadership: Leadership, isr: tuple[int, ...]) -> None:
        """Have the ISR written that is proposed."""
        self._isr_assumed(leadership)
        self._around.change_isr(Change(self, leadership, isr, self.controller_epoch))

    def _isr_assumed(self, leadership: Leadership) -> None:
        self._observe(
            "isr-assumed", leader_epoch=leadership.leader_epoch, isr=leadership.isr, proposed=leadership.proposed
        )

    def _advance(self, leadership: Leadership) -> None:
        """Move the high watermark to where every in-sync replica is. It waits while this leader syncs what it appends,
        though followers may have that already: in Kafka an append holds the log's lock (`UnifiedLog`, 3.9.1)."""
        if self._appending:
            return
        log, around = self.log, self._around
        min_isr = 0 if around.commits_under_min_isr else self._min_isr
        reached = leadership.high_watermark(log.high_watermark, log.end_offset, around.tasks.now_us(), min_isr=min_isr)
        if around.commits_alone:
            reached = log.end_offset
        if reached > log.high_watermark:
            log.high_watermark = reached
            self._observe("committed", offset=reached, leader_epoch=self.leader_epoch)
        self._progressed()

    def _progressed(self) -> None:
        progress, self.progress = self.progress, Future(("progress of", str(self.log)))
        progress.set(None)

    # -- what followers do ------------------------------------------------------------------

    @property
    def followed(self) -> int | None:
        """The leader that it follows; None if it follows none."""
        return self.leader if self.role is ReplicaRole.FOLLOWER else None

    def _follows(self, leader_epoch: int) -> bool:
        return (self.role, self.leader_epoch) == (ReplicaRole.FOLLOWER, leader_epoch)

    async def truncate(self, offset: int, leader_epoch: int) -> bool:
        """Drop all from `offset` on, as a follower in `leader_epoch`. False: it is none any more. Raises LogFailed."""
        async with self._changing:
            if self._follows(leader_epoch):
                await self._cut(offset, lambda: self.log.truncate_to(offset))
            return self._follows(leader_epoch)

    async def restart_at(self, offset: int, leader_epoch: int) -> bool:
        """Drop everything, and go on at `offset`. As `truncate`."""
        async with self._changing:
            if self._follows(leader_epoch):
                await self._cut(offset, lambda: self.log.restart_at(offset))
            return self._follows(leader_epoch)

    async def _cut(self, offset: int, work: Callable[[], Awaitable[None]]) -> None:
        end_offset, high_watermark = self.log.end_offset, self.log.high_watermark
        await self._with_log(work)
        if self.log.end_offset != end_offset:
            self._observe(
                "truncated",
                from_offset=end_offset,
                to_offset=offset,
                high_watermark=high_watermark,
                leader_epoch=self.leader_epoch,
            )

    async def append_fetched(
        self, records: bytes, leader_epoch: int, *, fetch_offset: int, high_watermark: int, start_offset: int
    ) -> bool:
        """Write what the leader has sent for `fetch_offset`, and take over its high watermark, as far as the log goes,
        and its start. False: nothing was done, because this replica does not follow in `leader_epoch` any more, or its
        log ends elsewhere. Raises LogErrors."""
        async with self._changing:
            log = self.log
            if not self._follows(leader_epoch) or log.end_offset != fetch_offset:
                return False
            if records:
                await self._with_log(lambda: log.append_replica(records, leader_epoch))
                self._observe("replicated", end_offset=log.end_offset, leader_epoch=leader_epoch)
            log.high_watermark = followers_high_watermark(high_watermark, log.start_offset, log.end_offset)
            if start_offset > log.start_offset:
                await self._with_log(lambda: log.delete_records(min(start_offset, log.high_watermark)))
            return True

    async def _with_log(self, work: Callable[[], Awaitable[None]]) -> None:
        """Raises LogErrors."""
        try:
            await work()
        except LogError:
            self._check_log()
            raise
