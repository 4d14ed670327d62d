"""Members' lives: when each was there, connected and undisturbed, and the rebalances it ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rebalance_lab.checks.faults import DEEDS
from rebalance_lab.checks.stretches import Stretch
from rebalance_lab.history.events import Event, EventId, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import KILL
from rebalance_lab.history.views import events_of, once

#: (actor, member)
_Who = tuple[str, str]


@dataclass(slots=True)
class Attempt:
    """One attempt of a rebalance. `failed`: its ATTEMPT_FAILED, None where it succeeded or the
    history ends first; `ended`: that, or the REBALANCE_ENDED of its success."""

    began: Event
    decided: Event | None = None
    failed: Event | None = None
    ended: Event | None = None


@dataclass(slots=True)
class Rebalance:
    """From REBALANCE_BEGAN to REBALANCE_ENDED; `ended` is None where the history ends first."""

    began: Event
    ended: Event | None = None
    attempts: list[Attempt] = field(default_factory=list)

    @property
    def outcome(self) -> object:
        """ok, failed or shutdown; None while it runs."""
        return None if self.ended is None else self.ended.of("outcome")


@dataclass(slots=True)
class Life:
    """One member, by its process: two may go by one name. `settled`: the REBALANCE_ENDED of its first
    success; `gone`: its MEMBER_CLOSED, or the FAULT_BEGAN of its kill; `closing`: its MEMBER_CLOSING.
    `connected`: while its session was connected. `disturbed`: while a fault that goes on for a while had
    it for its target, to the end where the fault never ended."""

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
    def who(self) -> _Who:
        return (self.actor, self.member)

    @property
    def left_us(self) -> int | None:
        """When it began to leave or was killed; None for one that is there to the end."""
        times = [event.at_us for event in (self.closing, self.gone) if event is not None]
        return min(times, default=None)

    def undisturbed(self, begin_us: int, end_us: int) -> bool:
        """Whether it was there and connected all the time, and no fault was about it."""
        if self.started.at_us > begin_us or (self.left_us is not None and self.left_us <= end_us):
            return False
        if any(fault.begin_us <= end_us and fault.end_us >= begin_us for fault in self.disturbed):
            return False
        return any(stretch.begin_us <= begin_us and stretch.end_us >= end_us for stretch in self.connected)

    def gave_up_by(self, rest: Event) -> bool:
        """Whether the last rebalance that it had ended by a rest had failed."""
        ended = [each for each in self.rebalances if each.ended is not None and each.ended.at_us <= rest.at_us]
        return bool(ended) and ended[-1].outcome == "failed"

    def idle_us(self, begin_us: int, end_us: int) -> int:
        """How long of a stretch it was in no rebalance."""
        busy_us = 0
        for rebalance in self.rebalances:
            until_us = end_us if rebalance.ended is None else min(rebalance.ended.at_us, end_us)
            busy_us += max(0, until_us - max(rebalance.began.at_us, begin_us))
        return end_us - begin_us - busy_us


_KINDS = (
    *(Kind.MEMBER_STARTED, Kind.MEMBER_CLOSING, Kind.MEMBER_CLOSED),
    *(Kind.CONNECTED, Kind.DISCONNECTED, Kind.EXPIRED),
    *(Kind.REBALANCE_BEGAN, Kind.REBALANCE_ENDED, Kind.ATTEMPT_BEGAN, Kind.DECIDED, Kind.ATTEMPT_FAILED),
    *(Kind.FAULT_BEGAN, Kind.FAULT_ENDED),
)


@once
def lives(history: History) -> Sequence[Life]:
    """The members of a history, in the order in which they started."""
    book = _Book(history)
    for event in events_of(history, *_KINDS):
        book.take(event)
    return book.finish()


def living_at(history: History, group: str | None, rest: Event) -> list[Life]:
    """The members of a group that had started before a rest and had not gone. A rest follows a quiet time, so a member
    that starts at the moment of a rest comes after it."""
    return [
        life
        for life in lives(history)
        if life.group == group
        and life.started.at_us < rest.at_us
        and (life.gone is None or life.gone.at_us >= rest.at_us)
    ]


class _Book:
    """Lives in the making."""

    def __init__(self, history: History) -> None:
        self._end_us = history.events[-1].at_us if history.events else 0
        self._lives: list[Life] = []
        self._by_member: dict[_Who, Life] = {}
        self._by_actor: dict[str, list[Life]] = {}
        self._connected: dict[_Who, Event] = {}
        self._faults: dict[tuple[str, object], Event] = {}

    def take(self, event: Event) -> None:
        match event.kind:
            case Kind.MEMBER_STARTED:
                self._start(event)
            case Kind.FAULT_BEGAN:
                self._fault(event)
            case Kind.FAULT_ENDED:
                self._fault_ended(event)
            case _:
                for life in self._about(event):
                    self._of_member(life, event)

    def _about(self, event: Event) -> list[Life]:
        """The members it is about: session events name their actor only."""
        if event.member is None:
            return [life for life in self._by_actor.get(event.actor, []) if life.gone is None]
        life = self._by_member.get((event.actor, event.member))
        return [] if life is None else [life]

    def _start(self, event: Event) -> None:
        life = Life(event.member or "", event.group or "", event.actor, event)
        self._lives.append(life)
        self._by_member[life.who] = life
        self._by_actor.setdefault(life.actor, []).append(life)

    def _fault(self, event: Event) -> None:
        if event.of("fault") not in DEEDS:
            self._faults[event.id] = event
        if event.of("fault") == KILL:
            for life in self._by_actor.get(str(event.of("target")), []):
                life.gone = life.gone or event
                self._disconnect(life, event)

    def _fault_ended(self, event: Event) -> None:
        began = self._faults.pop((event.actor, event.of("of")), None)
        if began is not None:
            self._disturb(began, event.at_us, event.id)

    def _disturb(self, began: Event, end_us: int, end: EventId | None) -> None:
        for life in self._by_actor.get(str(began.of("target")), []):
            life.disturbed.append(Stretch(began.at_us, end_us, began.id, end))

    def _of_member(self, life: Life, event: Event) -> None:
        if life.settled is None and event.kind is Kind.REBALANCE_ENDED and event.of("outcome") == "ok":
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

    def _connect(self, life: Life, event: Event) -> None:
        former = self._connected.get(life.who)
        if former is not None and former.session != event.session:
            self._disconnect(life, event)
        self._connected.setdefault(life.who, event)

    def _disconnect(self, life: Life, event: Event) -> None:
        begin = self._connected.pop(life.who, None)
        if begin is not None:
            life.connected.append(Stretch(begin.at_us, event.at_us, begin.id, event.id))

    def finish(self) -> list[Life]:
        for who, begin in self._connected.items():
            stretch = Stretch(begin.at_us, self._end_us, begin.id, None)
            self._by_member[who].connected.append(stretch)
        for began in self._faults.values():
            self._disturb(began, self._end_us, None)
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
