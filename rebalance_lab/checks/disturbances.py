"""Disturbances: connections and sessions that members of a live trial lost, and no fault of the trial explains.

A machine that is too busy stops a member, or the server, for seconds. A connection breaks, a session ends, and
what follows looks like what a cut or an expiry would have led to. From there on the trial proves nothing, neither
an anomaly nor its absence: what its checks call violated is unknown, and so is what they call clean.

A violation stays one if it was shown before the disturbance can have begun: all of its witness is older than that,
and the check calls the events up to then violated as well (so a deadline that was missed had passed by then). A
disturbance begins a session timeout before the loss at most: that is how long a client or a server may have stood
still before the connection broke. A loss in the phase `closing` disturbs nothing, as no check looks there. A
simulated machine is never too busy.
"""

from __future__ import annotations

from collections.abc import Mapping

from rebalance_lab.checks.faults import Fault, faults
from rebalance_lab.checks.model import Check, Finding, Outcome
from rebalance_lab.checks.scope import closing_us, next_rest
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of, once

#: Faults that never cost a member its connection.
HARMLESS = frozenset({"join", "topic", "broker"})


@once
def disturbance(history: History) -> Event | None:
    """The first loss of a connection or a session that no fault explains; None where there is none, and in
    simulated worlds."""
    if history.trial.world == "simulated":
        return None
    members = {event.actor for event in events_of(history, Kind.MEMBER_STARTED)}
    end_us, _ = closing_us(history)
    for event in events_of(history, Kind.DISCONNECTED, Kind.EXPIRED):
        if event.actor in members and event.at_us < end_us and not _meant(history, event, members):
            return event
    return None


def _meant(history: History, event: Event, members: set[str]) -> bool:
    """Whether a fault of the trial is the cause: one of this member's, or of the servers."""
    return any(_explains(history, fault, event, members) for fault in faults(history))


def _explains(history: History, fault: Fault, event: Event, members: set[str]) -> bool:
    name, target = fault.began.of("fault"), fault.began.of("target")
    if name in HARMLESS or event.at_us < fault.began.at_us or (target in members and target != event.actor):
        return False
    over = next_rest(history, fault.ended or fault.began)
    return over is None or event.at_us <= over.at_us


def doubted(history: History, checks: Mapping[str, Check], findings: Mapping[str, Finding]) -> dict[str, Finding]:
    """The findings of `checks`, by name: unknown where a disturbance may have brought them about."""
    event = disturbance(history)
    if event is None:
        return dict(findings)
    session_ms = history.trial.parameters.get("session_timeout_ms")
    since_us = event.at_us - 1000 * (session_ms if isinstance(session_ms, int) else 0)
    before = History(history.trial, tuple(each for each in history.events if each.at_us < since_us))
    what = "connection" if event.kind is Kind.DISCONNECTED else "session"
    doubt = f"{event.actor} lost its {what} ({event.actor}/{event.n}), and no fault was to do that"
    return {name: _doubted(checks[name], finding, before, doubt) for name, finding in findings.items()}


def _doubted(check: Check, finding: Finding, before: History, doubt: str) -> Finding:
    """`before`: what was recorded before the disturbance can have begun."""
    if finding.outcome is Outcome.UNKNOWN:
        return finding
    if finding.outcome is Outcome.CLEAN:
        return Finding(Outcome.UNKNOWN, doubt, (), finding.measures)
    witnessed = {each.id for each in before.events}.issuperset(finding.witness)
    if witnessed and check.applies(before) and check.judge(before).outcome is Outcome.VIOLATED:
        return finding
    return Finding(Outcome.UNKNOWN, f"{finding.why}; but {doubt}", finding.witness, finding.measures)
