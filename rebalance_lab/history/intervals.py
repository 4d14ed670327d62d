"""Ownership intervals: which member had which partition, and from when to when, by the events of each layer.

Each layer has its own rule (O1, O1e, O2 and O3 depend on them):

- *belief*: from OWNED to DISOWNED of the same member and partition, to the member's MEMBER_CLOSED, or to the
  FAULT_BEGAN of a kill of its actor. A pause does not end a belief.
- *registry*: from CREATED to DELETED of an owner znode (a registry event that names topic,
  partition and member), in zxid order. CHANGED to another member ends one interval and begins
  the next.
- *effect*: a run of WORKED reports of one member on one partition, from the first report to the last. Neighbours are at
  most two work periods apart, and a single report is a run of length 0. The period is the one that the member reported
  with its MEMBER_STARTED, or the trial's parameter if it reported none. A report at a stop (detail `last`) ends its run
  and never begins one: without a report in the two periods before it, the fetchers had done nothing. DISOWNED and then
  OWNED of the partition, with no report in between, cut a run: a fetcher whose queue is full reports nothing at its
  stop, so the member may have stopped and started its fetchers. FAULT_BEGAN of a kill or pause of its actor and
  FAULT_ENDED of a pause also cut a run, however short the pause was.

Two processes may use the same member name (the same `consumer.id`). The actor that recorded them, `Interval.actor`,
separates their belief and effect.

What an actor recorded after the FAULT_BEGAN of its kill, until it was started again, does not count: the runner writes
that event first and then sends the signal. A report inside a pause counts (in a run of its own): the member made it
between the event and the signal.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from rebalance_lab.history.events import Event, EventId, Kind, Layer
from rebalance_lab.history.files import History, HistoryError, Trial

KILL = "kill"
#: The process of a killed actor is started again.
RESTART = "restart"
PAUSE = "pause"
#: A node loses its way to ZooKeeper, in one direction or in both.
CUT = "cut"

#: Period of WORKED reports if the trial's parameters do not give it.
WORK_PERIOD_MS = 50


@dataclass(frozen=True, slots=True)
class Interval:
    """A time in which `member` has topic/partition according to `layer`. Times are in µs.

    `begin`, `end`: ids of the events that bound it. If the history ends first, `end` is None, and `end_us` is the time
    of its last event.
    """

    layer: Layer
    member: str
    group: str
    topic: str
    partition: int
    begin_us: int
    end_us: int
    begin: EventId
    end: EventId | None

    @property
    def place(self) -> tuple[str, str, int]:
        """(group, topic, partition): these can have only one owner."""
        return (self.group, self.topic, self.partition)

    @property
    def holder(self) -> tuple[str, str]:
        """(actor, member): the member, in one process."""
        return (self.actor, self.member)

    @property
    def actor(self) -> str:
        """The actor that recorded it: the member's process, or the registry."""
        return self.begin[0]


#: In place of a partition, for what there is only one of.
NO_PARTITION = -1

#: (group, topic, partition, member)
Claim = tuple[str, str, int, str]

#: A claim, and the actor that recorded it.
_ActorClaim = tuple[Claim, str]

_BELIEF_KINDS = frozenset({Kind.OWNED, Kind.DISOWNED, Kind.MEMBER_CLOSED, Kind.FAULT_BEGAN})
_EFFECT_KINDS = frozenset(
    {Kind.WORKED, Kind.OWNED, Kind.DISOWNED, Kind.MEMBER_STARTED, Kind.FAULT_BEGAN, Kind.FAULT_ENDED}
)


def of_kinds(events: Iterable[Event], kinds: frozenset[Kind]) -> list[Event]:
    """The events of these kinds, in their order. Most events of a history are reports and operations, so looking only
    at the few others makes a check several times faster."""
    return [event for event in events if event.kind in kinds]


def sort_key(interval: Interval) -> tuple[str, str, str, int, int, str, int, EventId]:
    """The order in which every function here returns its intervals."""
    return (
        interval.layer.value,
        interval.group,
        interval.topic,
        interval.partition,
        interval.begin_us,
        interval.member,
        interval.end_us,
        interval.begin,
    )


def belief_intervals(events: Sequence[Event]) -> list[Interval]:
    """Belief intervals of a history's events (in merge order). Raises HistoryError for an
    OWNED or DISOWNED without member, topic or partition.

    OWNED of what the member already has, and DISOWNED of what it does not have, change nothing.
    """
    book = Book(Layer.BELIEF)
    killed: set[str] = set()
    for event in of_kinds(events, _BELIEF_KINDS):
        kind = event.kind
        if kind is Kind.OWNED:
            if event.actor not in killed:
                book.open(_claim_of(event), event)
        elif kind is Kind.DISOWNED:
            book.close(_claim_of(event), event)
        elif kind is Kind.MEMBER_CLOSED:
            book.close_member(event)
        elif kind is Kind.FAULT_BEGAN and event.of("fault") == KILL:
            target = str(event.of("target"))
            killed.add(target)
            book.close_actor(target, event)
        elif kind is Kind.FAULT_BEGAN and event.of("fault") == RESTART:
            killed.discard(str(event.of("target")))
    return book.finish(events)


def registry_order(events: Iterable[Event]) -> list[Event]:
    """The registry's events in its own order: by zxid, then as the server logged them."""
    registry = Layer.REGISTRY
    return sorted([event for event in events if event.layer is registry], key=_zxid_order)


def owner_claim(event: Event) -> Claim | None:
    """(group, topic, partition, member) of a registry event about an owner znode, else None."""
    if event.topic is None or event.partition is None or event.member is None:
        return None
    return (event.group or "", event.topic, event.partition, event.member)


def registry_intervals(events: Sequence[Event]) -> list[Interval]:
    """Registry intervals. `end_us` is never before `begin_us`, even if the server's wall clock stepped back: the zxid
    decides the order, and the time only the length."""
    book = Book(Layer.REGISTRY)
    for event in registry_order(events):
        claim = owner_claim(event)
        if claim is None:
            continue
        if event.kind is Kind.CREATED:
            book.open(claim, event)
        elif event.kind is Kind.CHANGED:
            book.close_others(claim, event)
            book.open(claim, event)
        elif event.kind is Kind.DELETED:
            book.close(claim, event)
    return book.finish(events)


def effect_intervals(events: Iterable[Event], *, work_period_ms: int = WORK_PERIOD_MS) -> list[Interval]:
    """Effect runs of a history's events (in merge order). `work_period_ms`: for members that did not report theirs.
    Raises HistoryError for a WORKED, OWNED or DISOWNED without member, topic or partition."""
    runs = _Runs(work_period_ms)
    killed: set[str] = set()
    for event in of_kinds(events, _EFFECT_KINDS):
        kind = event.kind
        if kind is Kind.FAULT_BEGAN and event.of("fault") == RESTART:
            killed.discard(str(event.of("target")))
        elif event.actor in killed:
            continue
        if kind is Kind.WORKED:
            runs.report(event)
        elif kind is Kind.DISOWNED:
            runs.disowned((_claim_of(event), event.actor))
        elif kind is Kind.OWNED:
            runs.owned((_claim_of(event), event.actor))
        elif kind is Kind.MEMBER_STARTED:
            runs.started(event)
        elif _cuts_effect(event):
            target = str(event.of("target"))
            if event.of("fault") == KILL:
                killed.add(target)
            runs.cut_actor(target)
    return runs.finish()


#: Computes the intervals of a trial: the rows of its picture, and of the table of intervals.
Holdings = Callable[[History], Iterable[Interval]]

#: The package of the lab's subjects. It is imported by name, because subjects import this module.
SUBJECT_PACKAGE = "rebalance_lab.subjects"

#: Of subjects from outside that package, by name.
REGISTERED: dict[str, Holdings] = {}


def register_holdings(subject: str, holdings: Holdings) -> None:
    """Register how the intervals of a subject's trials are computed."""
    REGISTERED[subject] = holdings


def holdings_by_subject() -> dict[str, Holdings]:
    """Of the subjects other than the consumer group: those that were registered, and the `HOLDINGS` of each module
    `holdings` in the lab's subjects. Those are found, not registered: a process that loads no subject, such as one of
    Spark's, computes the same."""
    return _found_holdings() | REGISTERED


@cache
def _found_holdings() -> dict[str, Holdings]:
    found: dict[str, Holdings] = {}
    for info in pkgutil.iter_modules(importlib.import_module(SUBJECT_PACKAGE).__path__):
        name = f"{SUBJECT_PACKAGE}.{info.name}.holdings"
        if importlib.util.find_spec(name) is not None:
            found |= importlib.import_module(name).HOLDINGS
    return found


def ownership_intervals(history: History) -> list[Interval]:
    """The intervals of all three layers of a trial, sorted by (layer, group, topic, partition, begin, member)."""
    holdings = holdings_by_subject().get(history.trial.subject)
    if holdings is not None:
        return sorted(holdings(history), key=sort_key)
    events = history.events
    return [
        *belief_intervals(events),
        *effect_intervals(events, work_period_ms=work_period_ms(history.trial)),
        *registry_intervals(events),
    ]


def work_period_ms(trial: Trial) -> int:
    """The trial's period of WORKED reports (parameter `work_period_ms`)."""
    return int(trial.parameters.get("work_period_ms", WORK_PERIOD_MS))


def _cuts_effect(event: Event) -> bool:
    if event.kind is Kind.FAULT_BEGAN:
        return event.of("fault") in (KILL, PAUSE)
    return event.kind is Kind.FAULT_ENDED and event.of("fault") == PAUSE


def _zxid_order(event: Event) -> tuple[int, int]:
    if event.zxid is None:
        raise HistoryError(f"registry event {event.id} ({event.kind}) has no zxid: was its recorder cut short?")
    return (event.zxid, event.n)


def _claim_of(event: Event) -> Claim:
    claim = owner_claim(event)
    if claim is None:
        raise HistoryError(
            f"event {event.id} ({event.kind}, at {event.at_us} us) must name member, topic and partition: "
            f"it has {event.member}, {event.topic}, {event.partition}; repair the recorder that wrote it"
        )
    return claim


def _interval(layer: Layer, claim: Claim, begin: Event, end: Event | None, end_us: int) -> Interval:
    group, topic, partition, member = claim
    return Interval(
        layer=layer,
        member=member,
        group=group,
        topic=topic,
        partition=partition,
        begin_us=begin.at_us,
        end_us=max(begin.at_us, end_us),
        begin=begin.id,
        end=None if end is None else end.id,
    )


class Book:
    """Builds the intervals of one layer from what opens and closes claims. In the layer registry, the registry records
    the events of all members."""

    def __init__(self, layer: Layer) -> None:
        self._layer = layer
        self._open: dict[_ActorClaim, Event] = {}
        self._done: list[Interval] = []

    def open(self, claim: Claim, event: Event) -> None:
        self._open.setdefault((claim, event.actor), event)

    def close(self, claim: Claim, event: Event) -> None:
        self._close((claim, event.actor), event)

    def _close(self, key: _ActorClaim, event: Event) -> None:
        begin = self._open.pop(key, None)
        if begin is not None:
            self._done.append(_interval(self._layer, key[0], begin, event, event.at_us))

    def close_others(self, claim: Claim, event: Event) -> None:
        """End the intervals of other members for the claim's partition."""
        for other in [other for other in self._open if other[0][:3] == claim[:3] and other[0] != claim]:
            self._close(other, event)

    def close_member(self, event: Event) -> None:
        """End all intervals of the event's member."""
        for key in [key for key in self._open if key[0][3] == event.member and key[1] == event.actor]:
            self._close(key, event)

    def close_actor(self, actor: str, event: Event) -> None:
        """End all intervals that `actor` began."""
        for key in [key for key in self._open if key[1] == actor]:
            self._close(key, event)

    def finish(self, events: Sequence[Event]) -> list[Interval]:
        end_us = events[-1].at_us if events else 0
        self._done.extend(_interval(self._layer, key[0], begin, None, end_us) for key, begin in self._open.items())
        self._open.clear()
        return sorted(self._done, key=sort_key)


class _Runs:
    """Builds runs of work."""

    def __init__(self, work_period_ms: int) -> None:
        self._work_period_ms = work_period_ms
        self._periods_ms: dict[str, int] = {}  # by actor
        self._open: dict[_ActorClaim, tuple[Event, Event]] = {}  # first and last report so far
        self._released: set[_ActorClaim] = set()  # DISOWNED since the last report
        self._done: list[Interval] = []

    def started(self, event: Event) -> None:
        reported_ms = event.of("work_period_ms")
        if isinstance(reported_ms, int):
            self._periods_ms[event.actor] = reported_ms

    def report(self, event: Event) -> None:
        key = _claim_of(event), event.actor
        gap_us = 2 * self._periods_ms.get(event.actor, self._work_period_ms) * 1000
        if key in self._open and event.at_us - self._open[key][1].at_us > gap_us:
            self._cut(key)
        self._released.discard(key)
        run = self._open.get(key)
        if not event.of("last"):
            self._open[key] = (event if run is None else run[0], event)
        elif run is not None:  # it stopped: a report soon after begins another run
            self._open[key] = (run[0], event)
            self._cut(key)

    def disowned(self, key: _ActorClaim) -> None:
        self._released.add(key)

    def owned(self, key: _ActorClaim) -> None:
        if key in self._released and key in self._open:
            self._cut(key)
        self._released.discard(key)

    def cut_actor(self, actor: str) -> None:
        for key in [key for key in self._open if key[1] == actor]:
            self._cut(key)

    def _cut(self, key: _ActorClaim) -> None:
        first, last = self._open.pop(key)
        self._done.append(_interval(Layer.EFFECT, key[0], first, last, last.at_us))

    def finish(self) -> list[Interval]:
        for key in list(self._open):
            self._cut(key)
        return sorted(self._done, key=sort_key)
