"""Why a member was not notified of a change that its watch should have reported.

A watch fires once, and ZkClient 0.3 sets it again when it handles the notification (`ZkClient`'s event
thread: exists, then getChildren or getData). If a further change comes before that, ZooKeeper sends
nothing, and the read that sets the watch again sees both changes: two notifications are merged into one. The
recorded events show whether a member was in that state, so a missing notification is either excused
by name or the watch failed to fire.
"""

from __future__ import annotations

from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.checks.lives import Life
from rebalance_lab.checks.spaced_changes import SpacedChange
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of, once

#: (actor, path)
_Watch = tuple[str, str]


def excuse(history: History, change: SpacedChange, life: Life) -> str | None:
    """Why `life` may have missed the notification of a change: an earlier one of the same path was
    under way, and the watch was not set again. None where its watch was set, or should have been.

    With operations recorded one by one, the read that sets the watch must have been answered at a zxid
    before the change. With operations only counted it is the end of the former notification that must
    have come before the change, by more than the tolerance between two clocks.
    """
    for path in change.watched:
        fired = [event for event in _fired(history).get((life.actor, path), ()) if event.at_us < change.phase.at_us]
        if fired and not _set_again(history, change, life, path, fired[-1]):
            return f"{life.member} had not set its watch of {path} again"
    return None


def _set_again(history: History, change: SpacedChange, life: Life, path: str, fired: Event) -> bool:
    assert change.event is not None
    key, zxid = (life.actor, path), change.event.zxid or 0
    if any(event.n > fired.n and (event.zxid or 0) < zxid for event in watch_answers(history).get(key, ())):
        return True
    handled = (event for event in _handled(history).get(key, ()) if event.n > fired.n)
    return any(event.at_us < change.event.at_us - TOLERANCE_US for event in handled)


@once
def _fired(history: History) -> dict[_Watch, list[Event]]:
    return by_path(events_of(history, Kind.WATCH_FIRED))


@once
def _handled(history: History) -> dict[_Watch, list[Event]]:
    return by_path(events_of(history, Kind.NOTIFICATION_HANDLED))


@once
def watch_answers(history: History) -> dict[_Watch, list[Event]]:
    """(actor, path) -> the answers to reads that set a watch."""
    watching = {event.id for event in events_of(history, Kind.INVOKED) if event.of("watch") is True}
    answers = events_of(history, Kind.OK)
    return by_path([event for event in answers if (event.actor, event.of("of")) in watching])


def by_path(events: list[Event]) -> dict[_Watch, list[Event]]:
    found: dict[_Watch, list[Event]] = {}
    for event in events:
        found.setdefault((event.actor, str(event.of("path"))), []).append(event)
    return found
