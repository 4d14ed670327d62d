"""C1, C6, C10: one controller goes on for too long, none is elected for too long, or one has not resigned.

The reign of a controller ends when `/controller` goes. The broker goes on until it hears of it: that its session has
expired, or that the znode is gone. From then on it has a moment to stop (`bound_us`), and until then two brokers may
believe that they control (C1). A broker that is registered and in touch with ZooKeeper stands at once, so that while
there is one `/controller` is gone for a moment at most (C6). A broker that is elected again has resigned before, and
what its controller knows belongs to the epoch of its last election (C10).

Witness: the end of a reign, or the first registration, and what came too late.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

from rebalance_lab.checks.broker_lives import in_lives
from rebalance_lab.checks.broker_names import registrations
from rebalance_lab.checks.elections import Election, elections
from rebalance_lab.checks.faults import clock_drifted, faults
from rebalance_lab.checks.in_touch import LEAST_US, in_touch_throughout
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.phases import before_closing, closing_us
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.events import Event, EventId, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.replicas import CONTROLS, CONTROLS_NO_MORE, STATE_KNOWN
from rebalance_lab.history.views import events_of
from rebalance_lab.wire.paths import CONTROLLER

Wrong = tuple[str, tuple[EventId | None, ...]]


class Belief(NamedTuple):
    """A broker believed that it controls, from `began` until `ended`, or, if that is None, the end of the trial."""

    began: Event
    ended: Event | None
    end_us: int

    @property
    def actor(self) -> str:
        return self.began.actor


#: In real time processes wait for a core, and a broker of Kafka begins its controller after it has registered.
LIVE_TIMES = 5

#: The beginning and the end of a time without `/controller`, and the events of both; None: the end of the trial.
_Gap = tuple[Event, int, Event | None]


def judge(history: History) -> Finding:
    """Measures: `count`, controllers that went on or had not resigned, and times without one that are too long;
    `gap_us`, the longest time without `/controller` after the first election; `overlap_us`, the longest time for which
    two brokers believed that they control; `overrun_us`, the longest time for which one believed it after its reign;
    `handovers`, the reigns that ended."""
    found = elections(history)
    beliefs = _beliefs(history)
    gaps = list(_gaps(history, found))
    overruns = list(_overruns(history, found, beliefs))
    late = [*_too_long(history, gaps), *_went_on(history, overruns), *_not_resigned(history)]
    measures = {
        "count": len(late),
        "gap_us": max((end_us - begin.at_us for begin, end_us, _ in gaps if begin.kind is Kind.DELETED), default=0),
        "overlap_us": _overlap_us(beliefs),
        "overrun_us": max((belief.end_us - ended.at_us for belief, ended in overruns), default=0),
        "handovers": sum(each.ended is not None for each in found),
    }
    if late:
        why, witness = late[0]
        return violated(why, witness, measures)
    return not_violated(history, "one controller followed the other in time", measures, across_layers=True)


def bound_us(world: str) -> int:
    """How long a notification and some requests may take in a world."""
    return LEAST_US if world == "simulated" else LIVE_TIMES * LEAST_US


def _beliefs(history: History) -> list[Belief]:
    """A kill ends a belief, and a pause does not."""
    end_us, _ = closing_us(history)
    found: list[Belief] = []
    open_: dict[str, Event] = {}
    for event, ended in in_lives(history, CONTROLS, CONTROLS_NO_MORE):
        actor = event.actor if ended is None else ended
        began = open_.pop(actor, None)
        if began is not None:
            found.append(Belief(began, event, min(event.at_us, end_us)))
        if event.kind is CONTROLS:
            open_[actor] = event
    return [*found, *(Belief(began, None, end_us) for began in open_.values())]


def _gaps(history: History, found: list[Election]) -> Iterator[_Gap]:
    """The times without `/controller`, from the first registration on."""
    end_us, _ = closing_us(history)
    began = min((event for _, event in registrations(history).values()), key=lambda event: event.at_us, default=None)
    begin: Event | None = began
    for each in found:
        if begin is not None and begin.at_us < end_us:
            yield begin, min(each.created.at_us, end_us), each.created
        begin = each.ended
    if begin is not None and begin.at_us < end_us:
        yield begin, end_us, None


def _too_long(history: History, gaps: list[_Gap]) -> Iterator[Wrong]:
    if clock_drifted(history):
        return
    limit_us = bound_us(history.trial.world)
    for begin, end_us, created in gaps:
        length_us = end_us - begin.at_us
        idle = in_touch_throughout(history, begin.at_us, end_us) if length_us > limit_us else []
        if idle:
            since = "/controller went" if begin.kind is Kind.DELETED else "the first broker had registered"
            why = f"for {seconds(length_us)} after {since} there was no controller, and {idle[0]} was in touch"
            yield why, (begin.id, None if created is None else created.id)


def _overruns(history: History, found: list[Election], beliefs: list[Belief]) -> Iterator[tuple[Belief, Event]]:
    """The beliefs that outlast their reign, and the end of the reign."""
    ends = {(each.winner, each.epoch): each.ended for each in found}
    for belief in beliefs:
        ended = ends.get((belief.actor, int(str(belief.began.of("epoch")))))
        if ended is not None and ended.at_us < belief.end_us:
            yield belief, ended


def _went_on(history: History, overruns: list[tuple[Belief, Event]]) -> Iterator[Wrong]:
    """Controllers that had heard that their reign was over, and went on."""
    limit_us = bound_us(history.trial.world)
    for belief, ended in overruns:
        heard = _heard(history, belief.actor, ended)
        if heard is None or not before_closing(history, heard):
            continue
        disturbed = any(
            fault.began.of("target") == belief.actor
            and fault.began.at_us <= heard.at_us + limit_us
            and fault.end_us >= heard.at_us
            for fault in faults(history)
        )
        late_us = belief.end_us - heard.at_us
        if late_us > limit_us and not disturbed:
            why = (
                f"{belief.actor} went on as the controller for {seconds(late_us)} after it had heard of its reign's end"
            )
            yield why, (ended.id, heard.id, None if belief.ended is None else belief.ended.id)


def _heard(history: History, broker: str, ended: Event) -> Event | None:
    """The first event of a broker that shows that it has heard of the end of its reign."""
    for event in events_of(history, Kind.EXPIRED, Kind.WATCH_FIRED):
        told = event.kind is Kind.EXPIRED or (event.of("path"), event.of("event")) == (CONTROLLER, "deleted")
        if event.actor == broker and event.at_us >= ended.at_us and told:
            return event
    return None


def _overlap_us(beliefs: list[Belief]) -> int:
    """The longest time for which two brokers believed it."""
    overlaps = (
        min(one.end_us, other.end_us) - max(one.began.at_us, other.began.at_us)
        for one, other in combinations(beliefs, 2)
        if one.actor != other.actor
    )
    return max([0, *overlaps])


def _not_resigned(history: History) -> Iterator[Wrong]:
    """Brokers that were elected again and had not resigned, or whose controllers go on with an earlier reign."""
    reigns: dict[str, Event] = {}
    over: dict[str, Event] = {}
    for event, ended in in_lives(history, CONTROLS, CONTROLS_NO_MORE, STATE_KNOWN):
        if ended is not None:
            reigns.pop(ended, None)
            over.pop(ended, None)
        elif event.kind is CONTROLS:
            before = reigns.get(event.actor)
            if before is not None:
                what = f"{event.actor} is the controller of epoch {event.of('epoch')}"
                yield f"{what}, and has not resigned from epoch {before.of('epoch')}", (before.id, event.id)
            reigns[event.actor] = event
        elif event.kind is CONTROLS_NO_MORE:
            over[event.actor] = event
            reigns.pop(event.actor, None)
        else:
            yield from _of_another_reign(event, reigns, over)


def _of_another_reign(event: Event, reigns: Mapping[str, Event], over: Mapping[str, Event]) -> Iterator[Wrong]:
    """What is wrong with what a controller has come to know."""
    now, what = reigns.get(event.actor), f"the controller of {event.actor} goes on with epoch {event.of('epoch')}"
    if now is None:
        resigned = over.get(event.actor)
        yield f"{what}, and it does not control", (None if resigned is None else resigned.id, event.id)
    elif now.of("epoch") != event.of("epoch"):
        yield f"{what}, and it controls in epoch {now.of('epoch')}", (now.id, event.id)


CHECK = Check(
    name="handover",
    compares=(Layer.REGISTRY, Layer.BELIEF, Layer.OP),
    meaning="A controller went on after it had heard of its reign's end, or no successor was elected for too long.",
    together="From one controller to the next there is a moment with two or with none, and this one lasted too long.",
    plants=(Planted("never-resigns", "controller-race", settings={}),),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=elections,
)
