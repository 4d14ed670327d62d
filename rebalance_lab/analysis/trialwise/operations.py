"""Whose operations are whose: events of sessions name no group."""

from __future__ import annotations

from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of


def groups_of_actors(history: History) -> dict[str, str]:
    """actor -> group of the first member that it started."""
    found: dict[str, str] = {}
    for event in events_of(history, Kind.MEMBER_STARTED):
        if event.group is not None:
            found.setdefault(event.actor, event.group)
    return found
