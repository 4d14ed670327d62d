"""Why a whole trial proves nothing: a loss that no fault explains, a clock that was set, or a history that contradicts
itself.

*Disturbances* are connections and sessions that members of a live trial lost although no fault of the trial explains
it. A machine that is too busy stops a member, or the server, for seconds. A connection breaks, a session ends, and what
follows looks like the result of a cut or an expiry. When the stall began is not recorded (a process that stands still
records nothing until it wakes), so no part of the trial is evidence. A loss in the phase `closing` does not matter: no
check looks there. A simulated machine is never too busy.

*A clock that was set*: in a live trial the registry's events have the server's wall clock, the others the monotonic
one. Where the wall clock moves by more than STEP_US against it, somebody has set it, or the machine was suspended. The
runner then takes new events for old ones, or waits for times that have gone.

*Incoherence*: four things are reported twice. A process that a fault stopped records nothing, and a node that is cut
off from ZooKeeper connects to no server (`faults.Fault.moved`). The period of work is a parameter of the trial, and
each member reports it when it starts; effect runs depend on it. A rest that the runner reports follows from the events
before it. Where the two reports differ, one of them is wrong, and nothing shows which.

In each case every finding is unknown: the trial proves neither an anomaly nor its absence.
"""

from __future__ import annotations

from collections.abc import Mapping

from rebalance_lab.checks.bounds import bounds, lacking
from rebalance_lab.checks.faults import TOLERANCE_US, Fault, faults
from rebalance_lab.checks.model import Finding, Outcome
from rebalance_lab.checks.phases import closing_us
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.events import Event, Kind, order
from rebalance_lab.history.fault_kinds import kind_of
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import work_period_ms
from rebalance_lab.history.rest import BEARING_ON_GROUP, RestTracker
from rebalance_lab.history.views import actor_by_session, events_of, once

#: NTP moves a clock by less than this in the time of a trial: at most half a millisecond a second.
STEP_US = 50_000


@once
def disturbance(history: History) -> Event | None:
    """The first loss of a connection or a session that no fault explains; None if there is none, and in simulated
    worlds. The end of a session counts even if its member never learns of it, unless the member left."""
    if history.trial.world == "simulated":
        return None
    members = {event.actor for event in events_of(history, Kind.MEMBER_STARTED)}
    leaving = events_of(history, Kind.MEMBER_CLOSING, Kind.MEMBER_CLOSED)
    end_us, _ = closing_us(history)
    for event in events_of(history, Kind.DISCONNECTED, Kind.EXPIRED, Kind.SESSION_CLOSED):
        closed = event.kind is Kind.SESSION_CLOSED
        actor = actor_by_session(history).get(event.session) if closed else event.actor
        if actor not in members or event.at_us >= end_us:
            continue
        if any(_explains(history, fault, event, actor, members) for fault in faults(history)):
            continue
        if not (closed and any(one.actor == actor and one.at_us <= event.at_us + TOLERANCE_US for one in leaving)):
            return event
    return None


def _explains(history: History, fault: Fault, event: Event, actor: str, members: set[str]) -> bool:
    """Whether a fault may have caused the loss: a fault of `actor`, or of the servers, until the first REST_REACHED
    after its end, in any phase. A fault of `actor` that has ended does not explain the loss of a later connection. The
    servers may elect a leader after theirs, and then close connections that are new."""
    target = fault.began.of("target")
    tolerance_us = TOLERANCE_US if event.kind is Kind.SESSION_CLOSED else 0  # by the server's clock
    of_another = target in members and target != actor
    if kind_of(fault.began).spares_connections or event.at_us < fault.began.at_us - tolerance_us or of_another:
        return False
    if target == actor and _connected_anew(history, fault, event, actor):
        return False
    ended = order(fault.ended or fault.began)
    over = next((rest for rest in events_of(history, Kind.REST_REACHED) if order(rest) > ended), None)
    return over is None or event.at_us <= over.at_us + tolerance_us


def _connected_anew(history: History, fault: Fault, loss: Event, actor: str) -> bool:
    """Whether a member made the connection that it loses, or the latest one of the session, after its fault had
    ended."""
    closed = loss.kind is Kind.SESSION_CLOSED
    made = (
        event
        for event in reversed(events_of(history, Kind.CONNECTED))
        if event.actor == actor and (event.session == loss.session if closed else order(event) < order(loss))
    )
    latest = next(made, None)
    return latest is not None and latest.at_us > fault.end_us


def doubted(history: History, findings: Mapping[str, Finding]) -> dict[str, Finding]:
    """The findings, by name: all unknown if something disturbed the trial, if the clock was set, or if the history
    contradicts itself (`incoherence`)."""
    doubt = _loss(history) or _step(history) or incoherence(history)
    return {
        name: finding if doubt is None or finding.outcome is Outcome.UNKNOWN else _doubted(finding, doubt)
        for name, finding in findings.items()
    }


def _loss(history: History) -> str | None:
    """The disturbance in words."""
    event = disturbance(history)
    if event is None:
        return None
    if event.kind is Kind.SESSION_CLOSED:
        what = f"session {event.session} of a member ended"
    else:
        what = f"{event.actor} lost its {'connection' if event.kind is Kind.DISCONNECTED else 'session'}"
    return f"{what} ({event.actor}/{event.n}), and no fault explains it"


def _step(history: History) -> str | None:
    """By how much the wall clock was set, in words."""
    drift_us = abs(history.trial.wall_drift_us)
    if history.trial.world == "simulated" or drift_us <= STEP_US:
        return None
    moved = f"it moved by {seconds(drift_us)} against the monotonic clock"
    return f"the wall clock was set, or the machine was suspended: {moved}"


def _doubted(finding: Finding, doubt: str) -> Finding:
    why = doubt if finding.outcome is Outcome.CLEAN else f"{finding.why}; but {doubt}"
    return Finding(Outcome.UNKNOWN, why, finding.witness, finding.measures)


# -- incoherent reports --------------------------------------------------------------------------


@once
def incoherence(history: History) -> str | None:
    """The first contradiction in a history; None if there is none."""
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
            return f"{event.actor} reports work every {reported_ms} ms, but the trial's work_period_ms is {period_ms}"
    return None


def _false_rest(history: History) -> str | None:
    """A REST_REACHED at which the group did not rest. Events of the last 2 ms before it do not count (plus the drift of
    the wall clock): two clocks do not show what came first."""
    if lacking(history) is not None:
        return None
    open_us = TOLERANCE_US + abs(history.trial.wall_drift_us)
    tracker = RestTracker()
    ahead = list(reversed(events_of(history, *BEARING_ON_GROUP)))
    for rest in events_of(history, Kind.REST_REACHED):
        while ahead and ahead[-1].at_us <= rest.at_us - open_us:
            tracker.feed(ahead.pop())
        why = _unrest(history, tracker, rest, open_us)
        if why is not None:
            return f"the runner reports a rest ({rest.actor}/{rest.n}), but {why}"
    return None


def _unrest(history: History, tracker: RestTracker, rest: Event, open_us: int) -> str | None:
    busy = tracker.busy()
    if busy is not None:
        return busy
    quiet_us = rest.at_us - tracker.last_change_us
    if quiet_us >= bounds(history).quiet_us - open_us:
        return None
    return f"the last change was {seconds(quiet_us)} before"
