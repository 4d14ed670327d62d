"""What triggered a rebalance: a change that it follows, something else, or unknown (Z7a, Z7b, Z15a).

A timer, or another change, may make a member rebalance soon after a change. The change triggered the rebalance only if

- the watcher runs it (`by`); all other rebalances of 0.8.2 run on other threads;
- a REBALANCE_TRIGGERED for an affected path (the znode's, or its parent's) came after the watcher's previous rebalance
  began, which used up the triggers before it;
- before it began, the member's watch of an affected path fired, or a read that sets this watch was answered, at the
  zxid of the change or later;
- from then on the member was idle for at most `Bounds.prompt_us`. Its own rebalances may delay a reaction: one lock
  serialises them, and some run on ZkClient's event thread, where notifications wait.

A member's first rebalance is forced (Z6). It is the reaction to a change that came after the member's id and before its
watch: `ZookeeperConsumerConnector.reinitializeConsumer` sets the watch later, and before the rebalance.

Where operations are only counted, the answer to such a read is not recorded. If the watch fired before the change and
the trigger came after it, the read may have brought the news: the cause is open. It is also open if the reaction was
late in a live trial or under a fault: the process or its server may have stood still.

A missing notification is excused only if the watch was not set. A watch fires once, and ZkClient 0.3 sets it again when
it handles the notification (event thread: exists, then getChildren or getData). If another change comes before that,
ZooKeeper sends nothing, and the read that sets the watch again sees both changes: they are merged into one
notification.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from rebalance_lab.checks.bounds import bounds
from rebalance_lab.checks.faults import TOLERANCE_US, undisturbed
from rebalance_lab.checks.members import MemberLife
from rebalance_lab.checks.operations import recorded_singly
from rebalance_lab.checks.spaced_changes import SpacedChange
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of, grouped, once

#: The `by` of rebalances that watches of ids, brokers and topics ask for.
_WATCHER = "watcher"

#: The `by` of a member's first rebalance.
_CREATE = "create"


class Cause(StrEnum):
    """`OPEN`: the history does not show which."""

    CHANGE = "change"
    OTHER = "other"
    OPEN = "open"


def cause(history: History, life: MemberLife, began: Event, change: Event) -> Cause:
    """What triggered a rebalance of `life` that began after a change."""
    if began.of("by") == _CREATE and not _watched(history, life, change):
        return Cause.CHANGE
    triggers = _unspent(history, life, began, change)
    if began.of("by") != _WATCHER or not triggers:
        return Cause.OTHER
    notices = _of_watches(history, began.actor, _touched(change), Kind.WATCH_FIRED, Kind.OK)
    heard = [each.at_us for each in notices if each.n < began.n and _after(each, change)]
    if not heard:
        merged = began.actor not in recorded_singly(history) and _since(history, triggers, change)
        return Cause.OPEN if merged else Cause.OTHER
    if life.idle_us(min(heard), began.at_us) <= bounds(history).prompt_us:
        return Cause.CHANGE
    excused = history.trial.world != "simulated" or not undisturbed(history, min(heard), began.at_us)
    return Cause.OPEN if excused else Cause.OTHER


def _watched(history: History, life: MemberLife, change: Event) -> bool:
    """Whether the history shows that a member had set its watch of the znode's parent before the change."""
    _, parent = _touched(change)
    answers = _of_watches(history, life.actor, (parent,), Kind.OK)
    return any(each.of("op") == "children" and (each.zxid or 0) < (change.zxid or 0) for each in answers)


def triggered_since(history: History, life: MemberLife, began: Event, change: Event) -> bool:
    """Whether a trigger for a change came after it, and this was the watcher's next rebalance."""
    return _since(history, _unspent(history, life, began, change), change)


def _unspent(history: History, life: MemberLife, began: Event, change: Event) -> list[Event]:
    """The triggers for the paths of a change between the watcher's former rebalance and this one."""
    watched = (one.began.n for one in life.rebalances if one.began.of("by") == _WATCHER)
    former = max((n for n in watched if n < began.n), default=life.started.n)
    triggers = _of_watches(history, began.actor, _touched(change), Kind.REBALANCE_TRIGGERED)
    return [each for each in triggers if former < each.n < began.n]


def _since(history: History, triggers: Iterable[Event], change: Event) -> bool:
    tolerance_us = 0 if history.trial.world == "simulated" else TOLERANCE_US
    return any(each.at_us >= change.at_us - tolerance_us for each in triggers)


def _touched(change: Event) -> tuple[str, str]:
    path = str(change.of("path"))
    return path, path.rpartition("/")[0]


def _after(notice: Event, change: Event) -> bool:
    """Whether this notification or reply told its member of the change."""
    if notice.kind is Kind.WATCH_FIRED:
        return notice.at_us >= change.at_us - TOLERANCE_US
    return (notice.zxid or 0) >= (change.zxid or 0)


def _of_watches(history: History, actor: str, paths: Iterable[str], *kinds: Kind) -> list[Event]:
    """What a member recorded of its watches of some paths: that one fired (WATCH_FIRED), was handled, triggered a
    rebalance, or was set by a read (OK)."""
    return [each for kind in kinds for path in paths for each in _by_watch(history).get((kind, actor, path), ())]


@once
def _by_watch(history: History) -> dict[tuple[Kind, str, str], list[Event]]:
    """(kind, actor, path) -> its events about the watch of that path."""
    signals = events_of(history, Kind.WATCH_FIRED, Kind.NOTIFICATION_HANDLED, Kind.REBALANCE_TRIGGERED)
    watching = {event.id for event in events_of(history, Kind.INVOKED) if event.of("watch") is True}
    answers = [event for event in events_of(history, Kind.OK) if (event.actor, event.of("of")) in watching]
    return grouped([*signals, *answers], lambda event: (event.kind, event.actor, str(event.of("path"))))


# -- notifications that were merged --------------------------------------------------------------


def merged_notification(history: History, change: SpacedChange, life: MemberLife) -> str | None:
    """Why `life` may have had no notification of a change: it had not set its watch again after an earlier one of the
    same path. None if its watch was, or should have been, set.

    If operations are recorded one by one, the read that sets the watch must have been answered at a zxid before the
    change. If they are only counted, the former notification must have been handled before the change, by more than the
    tolerance between two clocks.
    """
    for path in change.watched:
        every = _of_watches(history, life.actor, (path,), Kind.WATCH_FIRED)
        fired = [event for event in every if event.at_us < change.phase.at_us]
        if fired and not _set_again(history, change, life, path, fired[-1]):
            return f"{life.member} had not set its watch of {path} again"
    return None


def _set_again(history: History, change: SpacedChange, life: MemberLife, path: str, fired: Event) -> bool:
    assert change.event is not None
    zxid, until_us = change.event.zxid or 0, change.event.at_us - TOLERANCE_US
    later = _of_watches(history, life.actor, (path,), Kind.OK, Kind.NOTIFICATION_HANDLED)
    return any(
        (event.zxid or 0) < zxid if event.kind is Kind.OK else event.at_us < until_us
        for event in later
        if event.n > fired.n
    )
