"""What went wrong in a live trial that no fault was to do: then an anomaly is nobody's finding.

A machine that is too busy stops a member, or the server, for seconds. A connection breaks, a session
ends, and what follows is what a cut or an expiry would have led to. Such a trial says nothing against
the group, nor for a claim: what its checks call violated is unknown. What they call clean stays clean,
and what was shown before the machine can have stood still stays violated: the connection broke a
session's time later at most. A simulated world is never too busy.
"""

from __future__ import annotations

from rebalance_lab.checks.faults import Fault, faults
from rebalance_lab.checks.model import Finding, Outcome
from rebalance_lab.checks.scope import closing_us, next_rest
from rebalance_lab.history.events import Event, EventId, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of, once

#: Faults that never cost a member its connection.
HARMLESS = frozenset({"join", "topic", "broker"})


@once
def disturbance(history: History) -> Event | None:
    """The first loss of a connection or a session that no fault was to take; None where there is
    none, and in simulated worlds."""
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


def doubted(history: History, findings: dict[str, Finding]) -> dict[str, Finding]:
    """The findings, with those unknown that a disturbance may have brought about."""
    event = disturbance(history)
    if event is None:
        return findings
    session_ms = history.trial.parameters.get("session_timeout_ms")
    since_us = event.at_us - 1000 * (session_ms if isinstance(session_ms, int) else 0)
    before = {each.id for each in history.events if each.at_us < since_us}
    return {name: _doubted(finding, event, before) for name, finding in findings.items()}


def _doubted(finding: Finding, event: Event, before: set[EventId]) -> Finding:
    if finding.outcome is not Outcome.VIOLATED or before.issuperset(finding.witness):
        return finding
    what = "connection" if event.kind is Kind.DISCONNECTED else "session"
    why = f"{finding.why}; but {event.actor} lost its {what} ({event.actor}/{event.n}), and no fault was to do that"
    return Finding(Outcome.UNKNOWN, why, finding.witness, finding.measures)
