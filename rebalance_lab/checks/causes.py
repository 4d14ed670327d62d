"""What set a rebalance off: a change that it follows, something else, or what the history does not show (Z7a, Z7b,
Z15a).

A timer, or another change, may make a member rebalance soon after a change. The change set it off only if

- its watcher runs it (`by`), as a watch runs all others of 0.8.2 on other threads;
- a REBALANCE_TRIGGERED for a touched path (the znode's, or its parent's) came after the watcher's former rebalance
  began: that one spent the triggers before it;
- before it began, the member's watch of a touched path fired, or a read that sets this watch was answered, at the
  zxid of the change or later;
- from then on the member was in no rebalance for no longer than `Bounds.prompt_us`. Its own rebalances delay a
  reaction honestly: one lock keeps them apart, and some run on ZkClient's event thread, where notifications wait.

A member's first rebalance is forced (Z6). It is the reaction to a change that came after the member's id and before
its watch: `ZookeeperConsumerConnector.reinitializeConsumer` sets the watch later, and before the rebalance.

Where operations are only counted, the answer to such a read is not recorded. If the watch fired before the change
and the trigger came after it, the read may have been how the member heard: that is open. So is a reaction that was
late in a live trial, or under a fault: the process or its server may have stood still.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from rebalance_lab.checks.bounds import bounds
from rebalance_lab.checks.faults import TOLERANCE_US, undisturbed
from rebalance_lab.checks.lives import Life
from rebalance_lab.checks.operations import recorded_singly
from rebalance_lab.checks.unheard import by_path, watch_answers
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of, once

#: The `by` of rebalances that watches of ids, brokers and topics ask for.
_WATCHER = "watcher"

#: The `by` of a member's first rebalance.
_CREATE = "create"


class Cause(StrEnum):
    """`OPEN`: the history does not show it."""

    CHANGE = "change"
    OTHER = "other"
    OPEN = "open"


def cause(history: History, life: Life, began: Event, change: Event) -> Cause:
    """What set off a rebalance of `life` that began after a change."""
    if began.of("by") == _CREATE and not _watched(history, life, change):
        return Cause.CHANGE
    triggers = _unspent(history, life, began, change)
    if began.of("by") != _WATCHER or not triggers:
        return Cause.OTHER
    notices = _of_paths(_notices(history), began.actor, _touched(change))
    heard = [each.at_us for each in notices if each.n < began.n and _after(each, change)]
    if not heard:
        merged = began.actor not in recorded_singly(history) and _since(history, triggers, change)
        return Cause.OPEN if merged else Cause.OTHER
    if life.idle_us(min(heard), began.at_us) <= bounds(history).prompt_us:
        return Cause.CHANGE
    excused = history.trial.world != "simulated" or not undisturbed(history, min(heard), began.at_us)
    return Cause.OPEN if excused else Cause.OTHER


def _watched(history: History, life: Life, change: Event) -> bool:
    """Whether the history shows that a member's watch of the znode's parent was set before the change."""
    _, parent = _touched(change)
    answers = watch_answers(history).get((life.actor, parent), ())
    return any(each.of("op") == "children" and (each.zxid or 0) < (change.zxid or 0) for each in answers)


def triggered_since(history: History, life: Life, began: Event, change: Event) -> bool:
    """Whether a trigger for a change came after it, and before this rebalance began and no other of the watcher's."""
    return _since(history, _unspent(history, life, began, change), change)


def _unspent(history: History, life: Life, began: Event, change: Event) -> list[Event]:
    """The triggers for the paths of a change from the watcher's former rebalance until this one."""
    watched = (one.began.n for one in life.rebalances if one.began.of("by") == _WATCHER)
    former = max((n for n in watched if n < began.n), default=life.started.n)
    return [each for each in _of_paths(_triggers(history), began.actor, _touched(change)) if former < each.n < began.n]


def _since(history: History, triggers: Iterable[Event], change: Event) -> bool:
    tolerance_us = 0 if history.trial.world == "simulated" else TOLERANCE_US
    return any(each.at_us >= change.at_us - tolerance_us for each in triggers)


def _touched(change: Event) -> tuple[str, str]:
    path = str(change.of("path"))
    return path, path.rpartition("/")[0]


def _after(notice: Event, change: Event) -> bool:
    """Whether a member that had this notification or reply knew of the change."""
    if notice.kind is Kind.WATCH_FIRED:
        return notice.at_us >= change.at_us - TOLERANCE_US
    return (notice.zxid or 0) >= (change.zxid or 0)


def _of_paths(events: Mapping[tuple[str, str], Sequence[Event]], actor: str, paths: Iterable[str]) -> Iterable[Event]:
    return (event for path in paths for event in events.get((actor, path), ()))


@once
def _triggers(history: History) -> dict[tuple[str, str], list[Event]]:
    return by_path(events_of(history, Kind.REBALANCE_TRIGGERED))


@once
def _notices(history: History) -> dict[tuple[str, str], list[Event]]:
    """The watches that fired, and the answers to reads that set one."""
    watches_set = [event for events in watch_answers(history).values() for event in events]
    return by_path([*events_of(history, Kind.WATCH_FIRED), *watches_set])
