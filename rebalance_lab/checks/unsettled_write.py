"""A write is neither acknowledged nor refused (liveness).

While brokers fail, a client may have to ask for a write more than once, and an attempt may have an unknown outcome.
Once no fault has disturbed the cluster for a time (`bound_us`), a write is answered: with an acknowledgement, or with
an error that says that it is not in the log. Looked at is the last attempt for each number. If its outcome is unknown,
the cluster must have been disturbed shortly before it ended. If it has not ended, the cluster must have been disturbed
shortly before the trial takes it down, or the number was asked for at first shortly before that.

Witness: the first and the last attempt, and the event in which its outcome stayed unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rebalance_lab.checks.faults import faults
from rebalance_lab.checks.frozen_isr import bound_us as isr_bound_us
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.phases import closing_us
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.events import Event, EventId, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of
from rebalance_lab.history.writes import PRODUCE


def bound_us(parameters: Mapping[str, object]) -> int:
    """How long the cluster needs after a fault: a session ends and others are told, followers that lag leave the ISR,
    and a client gives up two requests. Of the parameters of a trial."""
    lag_ms, request_ms = parameters.get("lag_ms"), parameters.get("request_timeout_ms")
    assert isinstance(lag_ms, int) and isinstance(request_ms, int), "every trial has them"
    return isr_bound_us(parameters) + 1500 * lag_ms + 2000 * request_ms


def judge(history: History) -> Finding:
    """Measures: `count`, writes that are not settled; `writes`, numbers that were asked for; `unknown`, attempts of
    unknown outcome; `longest_us`, the longest time from the first attempt for a number until it was settled."""
    asked = [event for event in events_of(history, Kind.INVOKED) if event.of("op") == PRODUCE]
    ends = _ends(history)
    last, first = {each.of("number"): each for each in asked}, {each.of("number"): each for each in reversed(asked)}
    wrong = [each for number, its in last.items() for each in _unsettled(history, first[number], its, ends.get(its.id))]
    settled = [(first[number], ends[each.id]) for number, each in last.items() if each.id in ends]
    measures = {
        "count": len(wrong),
        "writes": len(last),
        "unknown": sum(ends[each.id].kind is Kind.INFO for each in asked if each.id in ends),
        "longest_us": max((end.at_us - begin.at_us for begin, end in settled if end.kind is not Kind.INFO), default=0),
    }
    if wrong:
        why, witness = wrong[0]
        return violated(why, witness, measures)
    why = f"{len(last)} writes were acknowledged or refused"
    return not_violated(history, why, measures)


def _ends(history: History) -> dict[EventId, Event]:
    """By the id of an attempt, how it ended."""
    ends = (event for event in events_of(history, Kind.OK, Kind.FAILED_OP, Kind.INFO) if event.of("op") == PRODUCE)
    return {(event.actor, int(str(event.of("of")))): event for event in ends}


def _unsettled(
    history: History, first: Event, last: Event, end: Event | None
) -> Iterator[tuple[str, tuple[EventId, ...]]]:
    """Why the last attempt for a number leaves it unsettled, and the witness."""
    if end is not None and end.kind is not Kind.INFO:
        return
    limit_us = bound_us(history.trial.parameters)
    until_us = closing_us(history)[0] if end is None else end.at_us
    if (end is None and until_us - first.at_us < limit_us) or not _calm(history, until_us - limit_us, until_us):
        return
    what = f"number {first.of('number')} was asked for at {seconds(first.at_us)}"
    if end is None:
        yield f"{what} and never answered", (first.id, last.id)
    else:
        yield f"{what} and never settled: {end.of('error')}", (first.id, last.id, end.id)


def _calm(history: History, begin_us: int, end_us: int) -> bool:
    """Whether no fault began, ended or went on in a time."""
    return all(fault.began.at_us > end_us or fault.end_us < begin_us for fault in faults(history))


def _writes(history: History) -> bool:
    return any(event.of("op") == PRODUCE for event in events_of(history, Kind.INVOKED))


CHECK = Check(
    name="unsettled_write",
    compares=(Layer.OP,),
    meaning="A write was neither acknowledged nor refused, though nothing had disturbed the cluster for long.",
    together="The client can wait no longer, and nobody will ever say whether the record is written.",
    plants=(Planted("never-answers", "isr-election", settings={}),),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=_writes,
)
