"""The proof that a live trial ran live."""

from __future__ import annotations

from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of

#: Trials of every other world are live.
SIMULATED = "simulated"


def unproved(history: History) -> str | None:
    """What is missing from the proof that a live trial ran live; None if nothing is, or if the trial is simulated."""
    trial = history.trial
    if trial.world == SIMULATED:
        return None
    if not trial.boot_ids or trial.started_wall_ms <= 0:
        return "it names no boot id, or no time at which it started"
    if "zookeeper" not in trial.versions:
        return "it names no version of ZooKeeper"
    hosts = {event.actor for event in events_of(history, Kind.PROCESS_STARTED)}
    for event in events_of(history, Kind.MEMBER_STARTED):
        if event.actor not in hosts:
            return f"no start of {event.actor}'s process is recorded"
    return None
