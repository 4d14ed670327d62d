"""Which node is which broker: the sessions in which brokers register show it."""

from __future__ import annotations

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import actor_by_session, events_of, once
from rebalance_lab.wire.paths import BROKER_IDS


@once
def registrations(history: History) -> dict[str | None, tuple[int, Event]]:
    """session -> the broker id that it has registered, and the event."""
    found: dict[str | None, tuple[int, Event]] = {}
    for event in events_of(history, Kind.CREATED):
        folder, _, name = str(event.of("path")).rpartition("/")
        if folder == BROKER_IDS and name.isascii() and name.isdigit():
            found[event.session] = int(name), event
    return found


def broker_names(history: History) -> dict[int, str]:
    """The node of each broker, by its id."""
    actors = actor_by_session(history)
    return {number: actors[session] for session, (number, _) in registrations(history).items() if session in actors}
