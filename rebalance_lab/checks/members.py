"""The members of a history: when each was alive, connected and undisturbed, and the rebalances it ran."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rebalance_lab.checks.faults import lasting_faults
from rebalance_lab.checks.stretches import Stretch
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import KILL
from rebalance_lab.history.rebalances import RebalanceOutcome
from rebalance_lab.history.views import events_of, once

#: (actor, member)
MemberKey = tuple[str, str]

#: (topic, partition)
Partition = tuple[str, int]


@dataclass(slots=True)
class Attempt:
    """One attempt of a rebalance. `failed`: its ATTEMPT_FAILED; None if it succeeded or the history ends first.
    `ended`: the same, or the REBALANCE_ENDED of its success. `wants`: what it decided to claim; `lost`: what it could
    not claim, as it reports."""

    began: Event
    decided: Event | None = None
    failed: Event | None = None
    ended: Event | None = None

    @property
    def wants(self) -> tuple[Partition, ...]:
        return _partitions_in(self.decided, "wants")

    @property
    def lost(self) -> tuple[Partition, ...]:
        return _partitions_in(self.failed, "conflicts")

    @property
    def reason(self) -> object:
        """Why it failed: conflict, error or shutdown; None if it did not."""
        return None if self.failed is None else self.failed.of("reason")


def _partitions_in(event: Event | None, name: str) -> tuple[Partition, ...]:
    pairs = None if event is None else event.of(name)
    return tuple((str(topic), int(each)) for topic, each in pairs) if isinstance(pairs, list | tuple) else ()


@dataclass(slots=True)
class Rebalance:
    """From REBALANCE_BEGAN to REBALANCE_ENDED; `ended` is None if the history ends first."""

    began: Event
    ended: Event | None = None
    attempts: list[Attempt] = field(default_factory=list)

    @property
    def outcome(self) -> object:
        """ok, failed or shutdown; None while it runs."""
        return None if self.ended is None else self.ended.of("outcome")


@dataclass(slots=True)
class MemberLife:
    """One member in one process (two processes may use the same name), from its MEMBER_STARTED to its end.

    `settled`: the REBALANCE_ENDED of its first success. `closing`: its MEMBER_CLOSING. `gone`: its MEMBER_CLOSED, or
    the FAULT_BEGAN of its kill. `connected`: when its session was connected. `disturbed`: when a lasting fault targeted
    it, until the end of the history if the fault never ended.
    """

    member: str
    group: str
    actor: str
    started: Event
    settled: Event | None = None
    closing: Event | None = None
    gone: Event | None = None
    connected: list[Stretch] = field(default_factory=list)
    disturbed: list[Stretch] = field(default_factory=list)
    rebalances: list[Rebalance] = field(default_factory=list)

    @property
    def key(self) -> MemberKey:
        return (self.actor, self.member)

    @property
    def left_us(self) -> int | None:
        """When it began to leave or was killed; None if it stayed to the end."""
        times = [event.at_us for event in (self.closing, self.gone) if event is not None]
        return min(times, default=None)

    @property
    def attempts(self) -> Iterator[Attempt]:
        """The attempts of all its rebalances."""
        return (attempt for rebalance in self.rebalances for attempt in rebalance.attempts)

    def undisturbed(self, begin_us: int, end_us: int) -> bool:
        """Whether it was alive and connected all the time, and no fault targeted it."""
        if self.started.at_us > begin_us or (self.left_us is not None and self.left_us <= end_us):
            return False
        if any(fault.begin_us <= end_us and fault.end_us >= begin_us for fault in self.disturbed):
            return False
        return any(stretch.begin_us <= begin_us and stretch.end_us >= end_us for stretch in self.connected)

    def gave_up_by(self, rest: Event) -> bool:
        """Whether the last rebalance that it had ended by a rest had failed."""
        ended = [each for each in self.rebalances if each.ended is not None and each.ended.at_us <= rest.at_us]
        return bool(ended) and ended[-1].outcome == RebalanceOutcome.FAILED

    def idle_us(self, begin_us: int, end_us: int) -> int:
        """How much of the time it was in no rebalance."""
        busy_us = 0
        for rebalance in self.rebalances:
            until_us = end_us if rebalance.ended is None else min(rebalance.ended.at_us, end_us)
            busy_us += max(0, until_us - max(rebalance.began.at_us, begin_us))
        return end_us - begin_us - busy_us


_KINDS = (
    *(Kind.MEMBER_STARTED, Kind.MEMBER_CLOSING, Kind.MEMBER_CLOSED),
    *(Kind.CONNECTED, Kind.DISCONNECTED, Kind.EXPIRED),
    *(Kind.REBALANCE_BEGAN, Kind.REBALANCE_ENDED, Kind.ATTEMPT_BEGAN, Kind.DECIDED, Kind.ATTEMPT_FAILED),
    Kind.FAULT_BEGAN,
)


@once
def member_lives(history: History) -> Sequence[MemberLife]:
    """The members of a history, in the order in which they started."""
    book = _LifeBuilder(history)
    for event in events_of(history, *_KINDS):
        book.take(event)
    return book.finish()


def living_at(history: History, group: str | None, rest: Event) -> list[MemberLife]:
    """The members of a group that were alive at a rest. A rest follows a quiet time, so a member that starts at the
    moment of a rest comes after it."""
    return [
        life
        for life in member_lives(history)
        if life.group == group
        and life.started.at_us < rest.at_us
        and (life.gone is None or life.gone.at_us >= rest.at_us)
    ]


class _LifeBuilder:
    """Builds the lives of members from events."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._end_us = history.events[-1].at_us if history.events else 0
        self._lives: list[MemberLife] = []
        self._by_member: dict[MemberKey, MemberLife] = {}
        self._by_actor: dict[str, list[MemberLife]] = {}
        self._connected: dict[MemberKey, Event] = {}

    def take(self, event: Event) -> None:
        match event.kind:
            case Kind.MEMBER_STARTED:
                life = MemberLife(event.member or "", event.group or "", event.actor, event)
                self._lives.append(life)
                self._by_member[life.key] = life
                self._by_actor.setdefault(life.actor, []).append(life)
            case Kind.FAULT_BEGAN:
                for life in self._by_actor.get(str(event.of("target")), []) if event.of("fault") == KILL else ():
                    life.gone = life.gone or event
                    self._disconnect(life, event)
            case _:
                for life in self._about(event):
                    self._of_member(life, event)

    def _about(self, event: Event) -> list[MemberLife]:
        """The members that an event is about: session events name only their actor."""
        if event.member is None:
            return [life for life in self._by_actor.get(event.actor, []) if life.gone is None]
        life = self._by_member.get((event.actor, event.member))
        return [] if life is None else [life]

    def _of_member(self, life: MemberLife, event: Event) -> None:
        if life.settled is None and event.kind is Kind.REBALANCE_ENDED and event.of("outcome") == RebalanceOutcome.OK:
            life.settled = event
        match event.kind:
            case Kind.CONNECTED:
                self._connect(life, event)
            case Kind.DISCONNECTED | Kind.EXPIRED:
                self._disconnect(life, event)
            case Kind.MEMBER_CLOSING:
                life.closing = event
            case Kind.MEMBER_CLOSED:
                life.gone = life.gone or event
                self._disconnect(life, event)
            case Kind.REBALANCE_BEGAN:
                life.rebalances.append(Rebalance(event))
            case _ if life.rebalances:
                _of_rebalance(life.rebalances[-1], event)

    def _connect(self, life: MemberLife, event: Event) -> None:
        former = self._connected.get(life.key)
        if former is not None and former.session != event.session:
            self._disconnect(life, event)
        self._connected.setdefault(life.key, event)

    def _disconnect(self, life: MemberLife, event: Event) -> None:
        begin = self._connected.pop(life.key, None)
        if begin is not None:
            life.connected.append(Stretch(begin.at_us, event.at_us, begin.id, event.id))

    def finish(self) -> list[MemberLife]:
        for key, begin in self._connected.items():
            stretch = Stretch(begin.at_us, self._end_us, begin.id, None)
            self._by_member[key].connected.append(stretch)
        for fault in lasting_faults(self._history):
            began, ended = fault.began, fault.ended
            until_us, until = (self._end_us, None) if ended is None else (ended.at_us, ended.id)
            for life in self._by_actor.get(str(began.of("target")), []):
                life.disturbed.append(Stretch(began.at_us, until_us, began.id, until))
        return self._lives


def _of_rebalance(rebalance: Rebalance, event: Event) -> None:
    attempt = rebalance.attempts[-1] if rebalance.attempts else None
    if event.kind is Kind.ATTEMPT_BEGAN:
        rebalance.attempts.append(Attempt(event))
    elif event.kind is Kind.REBALANCE_ENDED:
        rebalance.ended = event
        if attempt is not None and attempt.ended is None:
            attempt.ended = event
    elif attempt is not None and event.kind is Kind.DECIDED:
        attempt.decided = event
    elif attempt is not None:
        attempt.failed = attempt.ended = event
