"""What the leader of one epoch knows of its followers, and what follows for the high watermark and the ISR.

As `kafka.cluster.Partition` and `kafka.cluster.Replica` of Kafka 3.9.1. It touches no log and no network: a broker
hands in the end of its log and the time. Times are in µs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.sentinels import NO_LEADER_EPOCH

#: A follower that has not fetched in this epoch.
UNKNOWN_OFFSET = -1

#: Longer ago than any lag that is allowed.
NEVER_US = -(2**62)


def epoch_error(known: int, current: int) -> ErrorCode | None:
    """Why a leader in epoch `current` refuses a request whose sender knows the epoch `known`; None if it does not."""
    if known in (NO_LEADER_EPOCH, current):
        return None
    return ErrorCode.FENCED_LEADER_EPOCH if known < current else ErrorCode.UNKNOWN_LEADER_EPOCH


def followers_high_watermark(leaders: int, start_offset: int, end_offset: int) -> int:
    """A follower takes over its leader's high watermark as far as its own log goes. It may fall."""
    return max(start_offset, min(leaders, end_offset))


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a follower may be behind and still be in sync. `time_us`: replica.lag.time.max.ms. `messages`:
    replica.lag.max.messages of 0.8; None: the rule of 0.9 and later, which knows time only (KAFKA-1546)."""

    time_us: int
    messages: int | None = None


@dataclass(slots=True)
class FollowerState:
    """What the leader knows of one follower.

    - `end_offset`: of its last fetch.
    - `caught_up_us`: the last time at which it had all that the leader had then.
    - `fetched_us`, `leader_end_then`: the time of its last fetch, and the end of the leader's log at that time.
    """

    end_offset: int = UNKNOWN_OFFSET
    caught_up_us: int = NEVER_US
    fetched_us: int = NEVER_US
    leader_end_then: int = UNKNOWN_OFFSET

    def fetched(self, offset: int, leader_end: int, now_us: int) -> None:
        if offset >= leader_end:
            self.caught_up_us = max(self.caught_up_us, now_us)
        elif offset >= self.leader_end_then:
            self.caught_up_us = max(self.caught_up_us, self.fetched_us)
        self.end_offset, self.fetched_us = offset, now_us
        self.leader_end_then = max(self.leader_end_then, leader_end)

    def is_caught_up(self, leader_end: int, now_us: int, lag: Lag) -> bool:
        if lag.messages is None:
            return self.end_offset == leader_end or now_us - self.caught_up_us <= lag.time_us
        stuck = now_us - self.fetched_us > lag.time_us
        return not stuck and (self.end_offset == UNKNOWN_OFFSET or leader_end - self.end_offset <= lag.messages)


class Leadership:
    """The leadership of one broker in one leader epoch.

    - `start_offset`: the end of its log when the epoch began.
    - `isr`: as it is committed in ZooKeeper; `proposed`: the ISR that this leader has asked for and that is not
      committed yet, or None. `partition_epoch`: the version of the state znode.
    - `before`: this broker's previous leadership if, as far as it knows, it has led without a break. It keeps what it
      knows of its followers (`Replica.resetReplicaState` with `isNewLeader` false). If it has missed a leader epoch,
      that may be wrong: a follower may have truncated its log as another leader asked for. `forgets_if_missed`: it
      then forgets them, which no release of Kafka does.
    - `may_be_in_sync(broker)`: whether a broker is live, as the controller has said last.
    - `joins_caught_up`: while too few are in sync, the high watermark stands still, and a follower passes it long
      before it has caught up; so it joins only once it has, by the rule by which leaders drop followers (KAFKA-19996).
      False: as Kafka, it needs to have passed the high watermark.
    - `grace`: followers that are in sync when the epoch begins have the time that they may lag to fetch. False: they
      are behind until they do.
    """

    def __init__(
        self,
        broker_id: int,
        replicas: Sequence[int],
        isr: Sequence[int],
        *,
        leader_epoch: int,
        partition_epoch: int,
        start_offset: int,
        now_us: int,
        lag: Lag,
        may_be_in_sync: Callable[[int], bool],
        joins_from_epoch_start: bool = True,
        joins_caught_up: bool = False,
        before: Leadership | None = None,
        forgets_if_missed: bool = False,
        grace: bool = True,
    ) -> None:
        self.leader_epoch: int = leader_epoch
        if before is not None and forgets_if_missed and leader_epoch != before.leader_epoch + 1:
            before = None
        self.partition_epoch = partition_epoch
        self.start_offset = start_offset
        self.isr = tuple(isr)
        self.proposed: tuple[int, ...] | None = None
        self.replicas = tuple(replicas)
        self._broker_id = broker_id
        self._lag = lag
        self._may_be_in_sync = may_be_in_sync
        self._joins_from_epoch_start = joins_from_epoch_start
        self._joins_caught_up = joins_caught_up
        self._followers = {each: FollowerState() for each in replicas if each != broker_id}
        for each, follower in self._followers.items():
            in_sync_us = now_us if each in isr else NEVER_US
            known = None if before is None else before._followers.get(each)
            follower.caught_up_us = in_sync_us if grace or known is not None else NEVER_US
            if known is not None:
                follower.end_offset, follower.leader_end_then = known.end_offset, start_offset
            if known is not None or lag.messages is not None:
                follower.fetched_us = in_sync_us

    # -- followers --------------------------------------------------------------------------

    def is_follower(self, broker: int) -> bool:
        """Whether it is one of the replicas."""
        return broker in self._followers

    @property
    def end_offsets(self) -> Mapping[int, int]:
        """The end of each follower's log at its last fetch, or UNKNOWN_OFFSET."""
        return {broker: follower.end_offset for broker, follower in self._followers.items()}

    def fetched(self, follower: int, offset: int, leader_end: int, now_us: int) -> None:
        """A follower fetches from `offset` on: it has all before."""
        self._followers[follower].fetched(offset, leader_end, now_us)

    def counted(
        self, follower: int, offset: int, *, leader_end: int, high_watermark: int, now_us: int, min_isr: int
    ) -> tuple[int, ...] | None:
        """What follows of a fetch that counts (`fetches.conclude`). Returns the ISR to ask for, which is `proposed`
        from now on; None if the follower does not join. The high watermark may rise."""
        self.fetched(follower, offset, leader_end, now_us)
        joined = self.with_joined(
            follower, leader_end=leader_end, high_watermark=high_watermark, now_us=now_us, min_isr=min_isr
        )
        if joined is not None:
            self.proposed = joined
        return joined

    # -- high watermark ---------------------------------------------------------------------

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """All that may be in the ISR now, whatever comes of the change that is under way (KIP-497)."""
        proposed = self.proposed or ()
        return (*self.isr, *(each for each in proposed if each not in self.isr))

    def effective_min_isr(self, min_isr: int) -> int:
        """`min.insync.replicas`, which cannot be more than there are replicas."""
        return min(min_isr, len(self.replicas))

    def is_under(self, min_isr: int) -> bool:
        """Whether fewer than `min_isr` are in sync."""
        return len(self.isr) < self.effective_min_isr(min_isr)

    def high_watermark(self, current: int, leader_end: int, now_us: int, *, min_isr: int) -> int:
        """Where every replica is that is in sync, or is about to be. It does not fall, and does not rise while fewer
        than `min_isr` are in sync."""
        if self.is_under(min_isr):
            return current
        reached = leader_end
        in_sync = self.maximal_isr
        for broker, follower in self._followers.items():
            if follower.end_offset < reached and (
                broker in in_sync
                or (follower.is_caught_up(leader_end, now_us, self._lag) and self._may_be_in_sync(broker))
            ):
                reached = follower.end_offset
        return max(current, reached)

    # -- ISR --------------------------------------------------------------------------------

    def without_laggards(self, leader_end: int, now_us: int) -> tuple[int, ...] | None:
        """The ISR without those that have fallen behind; None if there are none, or another change is under way."""
        if self.proposed is not None:
            return None
        kept = tuple(
            each
            for each in self.isr
            if each == self._broker_id
            or (each in self._followers and self._followers[each].is_caught_up(leader_end, now_us, self._lag))
        )
        return kept if kept != self.isr else None

    def is_caught_up(self, follower: int, leader_end: int, now_us: int) -> bool:
        """Whether it is not behind for longer than it may be: by this rule a leader drops its followers."""
        return self._followers[follower].is_caught_up(leader_end, now_us, self._lag)

    def with_joined(
        self, follower: int, *, leader_end: int, high_watermark: int, now_us: int, min_isr: int
    ) -> tuple[int, ...] | None:
        """The ISR with a follower that has caught up; None if it has not, is in it, or another change is under way."""
        if self.proposed is not None or follower in self.isr or not self._may_be_in_sync(follower):
            return None
        end_offset = self._followers[follower].end_offset
        if end_offset < high_watermark or (self._joins_from_epoch_start and end_offset < self.start_offset):
            return None
        if self._joins_caught_up and self.is_under(min_isr) and not self.is_caught_up(follower, leader_end, now_us):
            return None
        return (*self.isr, follower)

    def committed(self, isr: Sequence[int], partition_epoch: int) -> bool:
        """A change has been written. Returns False for the answer to an earlier one."""
        if partition_epoch < self.partition_epoch:
            return False
        self.isr, self.partition_epoch, self.proposed = tuple(isr), partition_epoch, None
        return True
