"""O1e, effect overlap: two members worked on one partition in the same stretch of time.

Effect runs (`history.intervals`) of two members are compared on the host's one clock (or
virtual time), exactly; a run holds its ends, so one shared instant is an overlap, of length 0. A run that ends with
the report of a stop (`last`) is over then: at that instant another member may begin.
Claim Z10 stands on it: a paused member that wakes goes on working beside its successor.

Witness: at the first report of the run that began second, the other member was in its own
run: the reports of that run next before and next after that instant (one, if it reported at
that very instant), and that first report.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from rebalance_lab.checks.faults import not_violated, violated
from rebalance_lab.checks.model import Check, Finding
from rebalance_lab.checks.overlaps import Overlap, longest, measures, overlaps
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.events import Event, EventId, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import Interval, owner_claim
from rebalance_lab.history.views import effects, events_of


def judge(history: History) -> Finding:
    """Measures: `count`, `longest_us`, `total_us` (see `overlaps.measures`)."""
    intervals = effects(history)
    stops = {event.id for event in events_of(history, Kind.WORKED) if event.of("last") is True}
    found = [one for one in overlaps(intervals, closed=True) if not _hands_over(one, stops)]
    numbers = measures(found)
    if not found:
        nothing = None if intervals else "no member ever worked on a partition"
        return not_violated(history, "no two members worked on one partition at once", numbers, vacuous=nothing)
    worst = longest(found)
    return violated(
        f"{worst.names} both worked on {worst.first.topic}/{worst.first.partition} for {seconds(worst.length_us)}",
        _witness(history, worst),
        numbers,
    )


def _hands_over(overlap: Overlap, stops: AbstractSet[EventId]) -> bool:
    """Whether the first run had stopped when the second began."""
    return overlap.first.end in stops and overlap.first.end_us == overlap.second.begin_us


def _witness(history: History, overlap: Overlap) -> tuple[EventId, ...]:
    instant_us = overlap.second.begin_us
    reports = _reports(history, overlap.first)
    before = [event for event in reports if event.at_us <= instant_us][-1]
    after = next(event for event in reports if event.at_us >= instant_us)
    if before.at_us == instant_us:
        after = before
    return (before.id, overlap.second.begin, after.id)


def _reports(history: History, run: Interval) -> list[Event]:
    claim = (*run.place, run.member)
    return [
        event
        for event in events_of(history, Kind.WORKED)
        if run.begin_us <= event.at_us <= run.end_us and event.actor == run.actor and owner_claim(event) == claim
    ]


CHECK = Check(
    name="effect_overlap",
    compares=(Layer.EFFECT,),
    meaning="Two members worked on the same partition at the same time.",
    plants=("work-through-rebalance",),
    judge=judge,
)
