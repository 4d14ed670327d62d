"""Histories that were tampered with: events taken out, so that the rest still reads as a whole one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec

from rebalance_lab.history.events import Event, EventId, Kind
from rebalance_lab.history.files import History


def without(history: History, gone: Callable[[Event], bool]) -> History:
    """The history as if the events that are `gone` had never been recorded: each actor's other events are
    counted anew, and what named one of them by its id names it by the new one."""
    count: Counter[str] = Counter()
    names: dict[EventId, EventId] = {}
    kept = [event for event in history.events if not gone(event)]
    for event in sorted(kept, key=lambda event: event.n):
        names[event.id] = (event.actor, count[event.actor])
        count[event.actor] += 1
    return History(history.trial, tuple(_renamed(event, names) for event in kept))


def live(history: History) -> History:
    """The history as one of the world `processes`."""
    return History(msgspec.structs.replace(history.trial, world="processes"), history.events)


def _renamed(event: Event, names: dict[EventId, EventId]) -> Event:
    detail, of = event.detail, event.of("of")
    if detail is not None and isinstance(of, int) and (event.actor, of) in names:
        detail = {**detail, "of": names[event.actor, of][1]}
    cause = None if event.cause is None else names.get(event.cause)
    return msgspec.structs.replace(event, n=names[event.id][1], cause=cause, detail=detail)


def decisions(history: History, told: Callable[[Event], dict[str, object]]) -> History:
    """The history with other words in each DECIDED: `told` gives the detail that is different."""

    def reported(event: Event) -> Event:
        if event.kind is not Kind.DECIDED:
            return event
        return msgspec.structs.replace(event, detail={**(event.detail or {}), **told(event)})

    return History(history.trial, tuple(map(reported, history.events)))
