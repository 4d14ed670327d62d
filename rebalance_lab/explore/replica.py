"""One replica in the model: what a broker keeps and knows, and what each step makes of it.

The rules are the broker's: what a leader concludes of its followers (`Leadership`), where a follower cuts its log
(`truncation`), which epoch ended where (`LeaderEpochs`). What is modelled here is only what carries them out in a
broker: `Partition`, `Replicas`, `ReplicaFetcher` and `PartitionLog`.

A record is its leader epoch: one broker leads in an epoch, and it does not truncate meanwhile, so epoch and offset name
a record. Logs start at offset 0. Time is not modelled: whatever the leader knows of a follower, it has known for longer
than replica.lag.time.max.ms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from rebalance_lab.broker.log.epochs import UNDEFINED_EPOCH, EpochEnd, EpochStart, LeaderEpochs
from rebalance_lab.broker.replication.fetch_state import FetchState, asks_leader, first_state
from rebalance_lab.broker.replication.fetches import FetchAnswer, conclude
from rebalance_lab.broker.replication.leadership import (
    UNKNOWN_OFFSET,
    Lag,
    Leadership,
    epoch_error,
    followers_high_watermark,
)
from rebalance_lab.broker.replication.rules import ReplicationRules
from rebalance_lab.broker.replication.truncation import (
    Truncation,
    at_epoch_end,
    at_high_watermark,
    at_leader_end,
    must_restart,
)
from rebalance_lab.wire.kafka.sentinels import NO_LEADER_EPOCH

#: When a leader has learned everything that it knows, and when it draws its conclusions, in µs. The lag is 0.
_LEARNED_US, _NOW_US = 0, 1

#: min.insync.replicas.
_MIN_ISR = 1

Isr = tuple[int, ...]


class Role(Enum):
    """- IDLE: the broker has started again, and no controller has said anything yet.
    - LEADER, FOLLOWER: as the last order said.
    """

    IDLE = "idle"
    LEADER = "leader"
    FOLLOWER = "follower"


class AnswerKind(Enum):
    """- RECORDS: what comes next in the leader's log, and its high watermark.
    - DIVERGING: where the logs part.
    - EPOCH_END: where the follower's latest epoch ended.
    - OUT_OF_RANGE: the leader does not have what was asked for; the follower asks where its log ends.
    - LEADER_END: the leader's log ends there.
    """

    RECORDS = "records"
    DIVERGING = "diverging"
    EPOCH_END = "epoch end"
    OUT_OF_RANGE = "out of range"
    LEADER_END = "leader end"


class Answer(NamedTuple):
    """On its way to a follower. RECORDS: `epoch` of the one record, or UNDEFINED_EPOCH; `offset`: the high watermark.
    Else: the epoch and offset of the answer."""

    kind: AnswerKind
    epoch: int = UNDEFINED_EPOCH
    offset: int = UNKNOWN_OFFSET


class Fetch(NamedTuple):
    """A fetch: to broker `leader`, from `offset` on. `last_epoch`: that of the last record. `known_epoch`: the leader
    epoch that the follower knows. Both: or UNDEFINED_EPOCH."""

    leader: int
    offset: int
    last_epoch: int
    known_epoch: int


class EpochQuestion(NamedTuple):
    """Where does this epoch end in the leader's log? `known_epoch`: as in a fetch."""

    epoch: int
    known_epoch: int


class EndQuestion(NamedTuple):
    """Where does the leader's log end? `known_epoch`: as in a fetch."""

    known_epoch: int


Question = Fetch | EpochQuestion | EndQuestion


class Order(NamedTuple):
    """A LeaderAndIsr request."""

    leader_epoch: int
    leader: int
    isr: Isr


class Led(NamedTuple):
    """What a leader knows. `ends`: of each broker's log, or UNKNOWN_OFFSET. `proposed`: the ISR that it has asked for.
    `written`: the controller has written that, and the answer is on its way."""

    isr: Isr
    start_offset: int
    ends: tuple[int, ...]
    proposed: Isr | None = None
    written: bool = False


class Replica(NamedTuple):
    """- `log`: the leader epoch of each record. `epochs`: the log's leader epochs, as the broker keeps them.
    - `leader_epoch`: of the last order; IDLE: orders up to this epoch are not for this life of the broker.
    - `leader`: who leads, for a follower. `fetching`: how far it is with its log.
    - `led`: for a leader.
    - `answer`: on its way to this follower. `late`: a fetch of an earlier role or life that is still on its way.
    """

    log: tuple[int, ...]
    epochs: tuple[EpochStart, ...]
    high_watermark: int
    role: Role
    leader_epoch: int
    leader: int = -1
    fetching: FetchState = FetchState.FETCHING
    led: Led | None = None
    answer: Answer | None = None
    late: Fetch | None = None

    @property
    def end(self) -> int:
        return len(self.log)

    @property
    def exposed(self) -> tuple[int, ...]:
        """What consumers can read here."""
        return self.log[: self.high_watermark] if self.role is Role.LEADER else ()


class ReplicaSteps:
    """What becomes of replicas, by one rule set. Each method is a function of its arguments.

    `brokers`: how many there are. `late_fetches`: whether a fetch can arrive after its sender's role has changed.
    `forgets_if_missed`: see `Leadership`.
    """

    def __init__(
        self, rules: ReplicationRules, brokers: int, *, late_fetches: bool = False, forgets_if_missed: bool = False
    ) -> None:
        self.rules = rules
        self.brokers = brokers
        self.joins_from_epoch_start = rules.joins_from_epoch_start
        self.counts_diverging = False
        self._forgets_if_missed = forgets_if_missed
        self._late_fetches = late_fetches

    # -- orders -----------------------------------------------------------------------------

    def obeyed(self, me: int, replica: Replica, order: Order) -> Replica | None:
        """After a LeaderAndIsr request; None if it changes nothing. What was on its way to the old role is dropped."""
        if order.leader_epoch <= replica.leader_epoch or order.leader < 0:
            return None
        replica = self._left_behind(replica)
        if order.leader == me:
            return self._leading(me, replica, order)
        followed = replica.leader if replica.role is Role.FOLLOWER else None
        following = replica._replace(
            role=Role.FOLLOWER, leader_epoch=order.leader_epoch, leader=order.leader, led=None, answer=None
        )
        state = first_state(self.rules, leader=order.leader, followed=followed, has_epochs=bool(replica.epochs))
        return self._without_question(following._replace(fetching=state))

    def _leading(self, me: int, replica: Replica, order: Order) -> Replica:
        epochs = LeaderEpochs(replica.epochs)
        if self.rules.starts_epochs:
            epochs.assign(order.leader_epoch, replica.end)
        before = self._leadership(me, replica) if replica.led is not None else None
        led = Led(order.isr, replica.end, (UNKNOWN_OFFSET,) * self.brokers)
        leading = replica._replace(
            role=Role.LEADER,
            leader_epoch=order.leader_epoch,
            leader=me,
            fetching=FetchState.FETCHING,
            led=led,
            answer=None,
            epochs=epochs.entries,
        )
        return self._noted(leading, self._leadership(me, leading, before))

    def _left_behind(self, replica: Replica) -> Replica:
        """A fetch that has been sent may arrive at the old leader when the follower has another role."""
        sent = self.fetch(replica) if self._late_fetches else None
        return replica if sent is None or replica.answer is not None else replica._replace(late=sent)

    # -- leaders ----------------------------------------------------------------------------

    def appended(self, me: int, replica: Replica) -> Replica:
        """A leader has written a producer's record."""
        epochs = LeaderEpochs(replica.epochs)
        if epochs.latest != replica.leader_epoch:
            epochs.assign(replica.leader_epoch, replica.end)
        longer = replica._replace(log=(*replica.log, replica.leader_epoch), epochs=epochs.entries)
        return self._noted(longer, self._leadership(me, longer))

    def shrunk(self, me: int, replica: Replica) -> Iterator[Isr]:
        """The ISRs that a leader may ask for because followers have fallen behind."""
        rest = self._leadership(me, replica).without_laggards(replica.end, _NOW_US)
        if rest is None or replica.led is None:
            return
        late = [each for each in replica.led.isr if each not in rest]
        for chosen in range(1, 2 ** len(late)):
            gone = {each for number, each in enumerate(late) if chosen >> number & 1}
            yield tuple(each for each in replica.led.isr if each not in gone)

    def isr_written(self, replica: Replica, isr: Isr) -> Replica:
        """The controller has written an ISR that this leader has asked for. The leader does not know yet."""
        assert replica.led is not None
        return replica._replace(led=replica.led._replace(proposed=isr, written=True))

    def isr_answered(self, me: int, replica: Replica) -> Replica:
        """The leader knows."""
        leadership = self._leadership(me, replica)
        assert leadership.proposed is not None
        leadership.committed(tuple(sorted(leadership.proposed)), leadership.partition_epoch)
        return self._noted(replica, leadership)

    def _leadership(self, me: int, replica: Replica, before: Leadership | None = None) -> Leadership:
        """The broker's own object, with what this replica knows. Its partition epoch is not used: a change is fenced by
        the leader epoch, and a leader has one change under way at a time."""
        assert replica.led is not None
        led = replica.led
        leadership = Leadership(
            me,
            range(self.brokers),
            led.isr,
            leader_epoch=replica.leader_epoch,
            partition_epoch=0,
            start_offset=led.start_offset,
            now_us=_LEARNED_US,
            lag=Lag(0),
            may_be_in_sync=lambda _: True,
            joins_from_epoch_start=self.joins_from_epoch_start,
            before=before,
            forgets_if_missed=self._forgets_if_missed,
        )
        for broker, end in enumerate(led.ends):
            if end != UNKNOWN_OFFSET:
                leadership.fetched(broker, end, end, _LEARNED_US)
        leadership.proposed = led.proposed
        return leadership

    def _noted(self, replica: Replica, leadership: Leadership) -> Replica:
        """The replica with what its leadership knows now, and the high watermark that follows."""
        ends = leadership.end_offsets
        written = replica.led is not None and replica.led.written and leadership.proposed is not None
        proposed = None if leadership.proposed is None else tuple(sorted(leadership.proposed))
        in_sync = leadership.maximal_isr  # of others, only the next fetch counts
        known = tuple(
            ends.get(each, UNKNOWN_OFFSET) if each in in_sync else UNKNOWN_OFFSET for each in range(self.brokers)
        )
        return replica._replace(
            led=Led(tuple(sorted(leadership.isr)), leadership.start_offset, known, proposed, written),
            high_watermark=self.high_watermark(leadership, replica),
        )

    def high_watermark(self, leadership: Leadership, replica: Replica) -> int:
        return leadership.high_watermark(replica.high_watermark, replica.end, _NOW_US, min_isr=_MIN_ISR)

    # -- requests of followers --------------------------------------------------------------

    def fetch(self, replica: Replica) -> Fetch | None:
        """What a follower fetches next; None if it does not."""
        if replica.role is not Role.FOLLOWER or replica.fetching is not FetchState.FETCHING:
            return None
        return Fetch(
            replica.leader,
            replica.end,
            self.last_epoch(replica),
            self._known_epoch(replica),
        )

    def last_epoch(self, replica: Replica) -> int:
        """What a fetch says of the follower's last record."""
        return LeaderEpochs(replica.epochs).latest if self.rules.truncates_on_fetch else UNDEFINED_EPOCH

    def _known_epoch(self, replica: Replica) -> int:
        return replica.leader_epoch if self.rules.fences else NO_LEADER_EPOCH

    def question(self, replica: Replica) -> Question | None:
        """What a follower asks its leader next; None if it does not."""
        if replica.role is not Role.FOLLOWER or replica.fetching is FetchState.FAILED:
            return None
        if replica.answer is not None and replica.answer.kind is not AnswerKind.OUT_OF_RANGE:
            return None
        if replica.fetching is FetchState.TRUNCATING:
            return EpochQuestion(LeaderEpochs(replica.epochs).latest, self._known_epoch(replica))
        return self.fetch(replica) if replica.answer is None else EndQuestion(self._known_epoch(replica))

    def answered(self, me: int, leader: Replica, follower: int, question: Question) -> tuple[Replica, Answer] | None:
        """A leader receives what a follower asks, and answers; None if it refuses."""
        if isinstance(question, Fetch):
            return self.fetched(me, leader, follower, question)
        if leader.role is not Role.LEADER or epoch_error(question.known_epoch, leader.leader_epoch) is not None:
            return None
        if isinstance(question, EndQuestion):
            return leader, Answer(AnswerKind.LEADER_END, offset=leader.end)
        end = LeaderEpochs(leader.epochs).end_of(question.epoch, leader.end, before_first=self.rules.starts_epochs)
        return leader, Answer(AnswerKind.EPOCH_END, end.epoch, end.offset)

    def fetched(self, me: int, leader: Replica, follower: int, fetch: Fetch) -> tuple[Replica, Answer] | None:
        """A leader receives a fetch: it takes note of what the follower has, and answers with one record at most."""
        if leader.role is not Role.LEADER or epoch_error(fetch.known_epoch, leader.leader_epoch) is not None:
            return None
        concluded = conclude(
            fetch.offset,
            fetch.last_epoch,
            start_offset=0,
            end_offset=leader.end,
            end_of=lambda epoch: self._epoch_end(leader, epoch),
            counts_diverging=self.counts_diverging,
        )
        after = self._counted(me, leader, follower, fetch.offset) if concluded.counts else leader
        if concluded.parted is not None:
            return after, Answer(AnswerKind.DIVERGING, *concluded.parted)
        if concluded.answer is FetchAnswer.OUT_OF_RANGE:
            return after, Answer(AnswerKind.OUT_OF_RANGE)
        found = leader.log[fetch.offset] if fetch.offset < leader.end else UNDEFINED_EPOCH
        return after, Answer(AnswerKind.RECORDS, found, leader.high_watermark)

    def _counted(self, me: int, leader: Replica, follower: int, offset: int) -> Replica:
        leadership = self._leadership(me, leader)
        leadership.counted(
            follower,
            offset,
            leader_end=leader.end,
            high_watermark=leader.high_watermark,
            now_us=_LEARNED_US,
            min_isr=_MIN_ISR,
        )
        return self._noted(leader, leadership)

    @staticmethod
    def _epoch_end(replica: Replica, epoch: int) -> EpochEnd:
        return LeaderEpochs(replica.epochs).end_of(epoch, replica.end)

    # -- what followers make of answers -----------------------------------------------------

    def took(self, replica: Replica) -> Replica:
        """A follower has taken the answer that was on its way."""
        answer = replica.answer
        assert answer is not None
        replica = replica._replace(answer=None)
        if answer.kind is AnswerKind.OUT_OF_RANGE:
            return replica
        if answer.kind is AnswerKind.LEADER_END:
            return self._relocated(replica, answer.offset)
        if answer.kind is AnswerKind.RECORDS:
            return self._appended(replica, answer)
        return self._without_question(self.cut_at_epoch_end(replica, EpochEnd(answer.epoch, answer.offset)))

    def cut_at_epoch_end(self, replica: Replica, leaders: EpochEnd) -> Replica:
        """By a leader's answer about an epoch."""
        truncation = at_epoch_end(
            leaders,
            self._epoch_end(replica, leaders.epoch),
            high_watermark=replica.high_watermark,
            end_offset=replica.end,
            compares_epochs=self.rules.compares_epochs,
        )
        return self._cut(replica, truncation)

    def _appended(self, replica: Replica, answer: Answer) -> Replica:
        log, epochs = replica.log, LeaderEpochs(replica.epochs)
        if answer.epoch != UNDEFINED_EPOCH and answer.epoch <= replica.leader_epoch:
            if answer.epoch != epochs.latest:
                epochs.assign(answer.epoch, len(log))
            log = (*log, answer.epoch)
        high_watermark = followers_high_watermark(answer.offset, 0, len(log))
        return replica._replace(log=log, epochs=epochs.entries, high_watermark=high_watermark)

    def _relocated(self, replica: Replica, leader_end: int) -> Replica:
        truncation = at_leader_end(leader_end, replica.end)
        if truncation is not None:
            return self._cut(replica, truncation)
        if must_restart(0, replica.end, restarts_out_of_range=self.rules.restarts_out_of_range):
            return replica._replace(log=(), epochs=(), high_watermark=0)
        return replica

    def _without_question(self, replica: Replica) -> Replica:
        """A follower that is to truncate and asks its leader nothing cuts at its high watermark."""
        asks = asks_leader(self.rules, has_epochs=bool(replica.epochs))
        if replica.fetching is not FetchState.TRUNCATING or asks:
            return replica
        return self._cut(replica, at_high_watermark(replica.high_watermark, replica.end))

    def _cut(self, replica: Replica, truncation: Truncation) -> Replica:
        end = min(truncation.offset, replica.end)
        epochs = LeaderEpochs(replica.epochs)
        epochs.truncate_from_end(end)
        shorter = replica._replace(
            log=replica.log[:end], epochs=epochs.entries, high_watermark=min(replica.high_watermark, end)
        )
        return shorter._replace(fetching=FetchState.FETCHING) if truncation.complete else shorter

    # -- crashes ----------------------------------------------------------------------------

    def restarted(self, replica: Replica, *, high_watermark: int, end: int, after_epoch: int) -> Replica:
        """The broker has crashed and started again. `high_watermark`: of its checkpoint. `end`: of what its disk has
        kept. `after_epoch`: orders up to this epoch were for its earlier life."""
        replica = self._left_behind(replica)
        epochs = LeaderEpochs(replica.epochs)
        epochs.truncate_from_end(end)
        return Replica(
            replica.log[:end], epochs.entries, min(high_watermark, end), Role.IDLE, after_epoch, late=replica.late
        )


def renamed(replica: Replica, names: Sequence[int]) -> Replica:
    """The same with other names of brokers: `names[old]` is the new one."""
    led = replica.led
    if led is not None:
        ends = [UNKNOWN_OFFSET] * len(names)
        for old, end in enumerate(led.ends):
            ends[names[old]] = end
        proposed = None if led.proposed is None else renamed_isr(led.proposed, names)
        led = led._replace(isr=renamed_isr(led.isr, names), ends=tuple(ends), proposed=proposed)
    late = replica.late
    if late is not None:
        late = late._replace(leader=names[late.leader])
    leader = replica.leader if replica.leader < 0 else names[replica.leader]
    return replica._replace(leader=leader, led=led, late=late)


def shape(replica: Replica) -> tuple[object, ...]:
    """What names of brokers do not change."""
    led = replica.led
    return (
        *replica[:5],
        replica.fetching,
        replica.answer,
        None if led is None else (led.start_offset, *sorted(led.ends), len(led.isr), led.proposed is None, led.written),
        None if replica.late is None else replica.late[1:],
    )


def renamed_isr(isr: Isr, names: Sequence[int]) -> Isr:
    return tuple(sorted(names[each] for each in isr))
