"""O1e, effect overlap: two members worked on one partition at the same time.

The check compares effect runs (`history.intervals`) of two members exactly, on the host's one clock (or virtual time).
A run includes its ends, so one shared instant is an overlap of length 0. A run that ends with the report of a stop
(`last`) is over then: another member may begin at that instant. A run whose reports are less than a work period apart
shows only one moment of work, and a late report does not show when it was: an overlap with it leaves the check unknown.
Claim Z10 depends on this check: a paused member that wakes goes on working beside its successor.

Witness: the first report of the run that began second, and the reports of the other run next before and next after that
instant (one, if it reported at that very instant).
"""

from __future__ import annotations

from rebalance_lab.checks.model import ZK, Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.overlaps import Overlap, longest, measures, overlaps, reports_in, worked_for_a_period
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.events import EventId, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import effects, events_of


def judge(history: History) -> Finding:
    """Measures: `count`, `longest_us`, `total_us` (see `overlaps.measures`)."""
    intervals = effects(history)
    stops = {event.id for event in events_of(history, Kind.WORKED) if event.of("last") is True}
    judged = [
        (one, _doubt(history, one))
        for one in overlaps(intervals, closed=True)
        if one.first.end not in stops or one.first.end_us != one.second.begin_us  # else it had stopped by then
    ]
    found = [one for one, doubt in judged if doubt is None]
    numbers = measures(found)
    if not found:
        doubt = next((doubt for _, doubt in judged if doubt is not None), None)
        nothing = doubt if intervals else "no member ever worked on a partition"
        why = "no two members worked on the same partition at the same time"
        return not_violated(history, why, numbers, vacuous=nothing)
    worst = longest(found)
    return violated(
        f"{worst.names} both worked on {worst.first.topic}/{worst.first.partition} for {seconds(worst.length_us)}",
        _witness(history, worst),
        numbers,
    )


def _doubt(history: History, overlap: Overlap) -> str | None:
    """Why two runs that overlap do not show work at the same time."""
    for run in (overlap.first, overlap.second):
        if not worked_for_a_period(history, run):
            what = f"{run.member} reported work on {run.topic}/{run.partition} for less than a work period"
            return f"{what} beside another member's work: the reports may be late"
    return None


def _witness(history: History, overlap: Overlap) -> tuple[EventId, ...]:
    instant_us = overlap.second.begin_us
    reports = reports_in(history, overlap.first)
    before = [event for event in reports if event.at_us <= instant_us][-1]
    after = next(event for event in reports if event.at_us >= instant_us)
    if before.at_us == instant_us:
        after = before
    return (before.id, overlap.second.begin, after.id)


CHECK = Check(
    name="effect_overlap",
    compares=(Layer.EFFECT,),
    meaning="Two members worked on the same partition at the same time.",
    together=(
        "Two members work on the same partition at the same time. Messages are read twice, and nothing stops the "
        "member that is no longer the owner."
    ),
    plants=(Planted("work-through-rebalance", "zombie", control=True),),
    judge=judge,
    applies_to=(ZK,),
)
