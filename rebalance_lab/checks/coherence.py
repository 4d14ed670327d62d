"""Coherence: whether what the runner reports agrees with what the members and the registry report.

Three things are reported twice. A process that a fault stopped records nothing (`faults.Fault.moved`). The
period of work is a parameter of the trial, and each member reports it when it starts; effect runs depend on it.
A rest that the runner reports follows from the events before it. Where the two reports differ, one of them is
false, and nobody can know which: the history proves nothing, neither an anomaly nor its absence.
"""

from __future__ import annotations

from rebalance_lab.checks.bounds import bounds, lacking
from rebalance_lab.checks.faults import TOLERANCE_US, faults
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import work_period_ms
from rebalance_lab.history.rest import BEARING, RestTracker
from rebalance_lab.history.views import events_of, once


@once
def incoherence(history: History) -> str | None:
    """The first contradiction in a history; None where there is none."""
    contradicted = next((fault for fault in faults(history) if fault.moved is not None), None)
    if contradicted is not None:
        return contradicted.why_not_bitten
    return _other_period(history) or _false_rest(history)


def _other_period(history: History) -> str | None:
    """A member's period of work that is not the trial's."""
    period_ms = work_period_ms(history.trial)
    for event in events_of(history, Kind.MEMBER_STARTED):
        reported_ms = event.of("work_period_ms")
        if isinstance(reported_ms, int) and reported_ms != period_ms:
            return f"{event.actor} reports work each {reported_ms} ms, and the trial's work_period_ms is {period_ms}"
    return None


def _false_rest(history: History) -> str | None:
    """A REST_REACHED at which the group did not rest. Events of the last 2 ms before it do not count: two clocks
    leave open what came first. If the wall clock drifted, it is that much longer."""
    if lacking(history) is not None:
        return None
    open_us = TOLERANCE_US + abs(history.trial.wall_drift_us)
    tracker = RestTracker()
    ahead = list(reversed(events_of(history, *BEARING)))
    for rest in events_of(history, Kind.REST_REACHED):
        while ahead and ahead[-1].at_us <= rest.at_us - open_us:
            tracker.feed(ahead.pop())
        why = _unrest(history, tracker, rest, open_us)
        if why is not None:
            return f"the runner reports a rest ({rest.actor}/{rest.n}), and {why}"
    return None


def _unrest(history: History, tracker: RestTracker, rest: Event, open_us: int) -> str | None:
    busy = tracker.busy()
    if busy is not None:
        return busy
    quiet_us = rest.at_us - tracker.last_change_us
    if quiet_us >= bounds(history).quiet_us - open_us:
        return None
    return f"something changed {seconds(quiet_us)} before"
