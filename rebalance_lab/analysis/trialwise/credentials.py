"""What makes a trial one of its own, and a live one live."""

from __future__ import annotations

import hashlib

import msgspec

from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of

#: Trials are live in every other world.
SIMULATED = "simulated"


def course(history: History) -> str:
    """SHA-256 over what happened in registry and belief, in order: which kind of event, of whom, about what.

    Times, sessions and zxids are left out, and what members report of their work too: a setting
    that changes nothing else (a period of reports, a time-out that nothing waits for) gives the same course.
    """
    names = {event.member: event.actor for event in events_of(history, Kind.MEMBER_STARTED) if event.member}
    found = hashlib.sha256()
    for event in history.events:
        if event.layer in (Layer.REGISTRY, Layer.BELIEF):
            found.update(msgspec.json.encode(_step(event, names)) + b"\n")
    return found.hexdigest()


def _step(event: Event, names: dict[str, str]) -> list[object]:
    """An event of a course. Members go by their actors, as ids hold the time at which they were made."""
    path = event.of("path")
    if isinstance(path, str) and event.member in names:
        path = path.replace(event.member, names[event.member])
    who = names.get(event.member or "", event.member)
    return [event.actor, event.kind, who, event.topic, event.partition, path, event.of("code")]


def unproved(history: History) -> str | None:
    """What a live trial lacks of the proof that it ran live; None where nothing, and of a simulated one."""
    trial = history.trial
    if trial.world == SIMULATED:
        return None
    if not trial.boot_ids or trial.started_wall_ms <= 0:
        return "it names no boot id, or no time at which it started"
    if "zookeeper" not in trial.versions:
        return "it names no version of ZooKeeper"
    hosts = {event.actor for event in events_of(history, Kind.HOST_STARTED)}
    for event in events_of(history, Kind.MEMBER_STARTED):
        if event.actor not in hosts:
            return f"no start of {event.actor}'s process is recorded"
    return None
