"""Views: results that several checks derive from one history, computed once.

A view is a pure function of a history, like a check, and the history keeps its result. Its callers share the result and
must not change it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from itertools import chain
from typing import TypeVar, cast

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import (
    Interval,
    belief_intervals,
    effect_intervals,
    registry_intervals,
    registry_order,
    work_period_ms,
)

K = TypeVar("K")
T = TypeVar("T")

#: The name of the phase in which all members leave.
CLOSING = "closing"

#: An event with its position in the history.
_Placed = tuple[int, Event]


def once(compute: Callable[[History], T]) -> Callable[[History], T]:
    """A view that is computed when it is first needed."""
    name = f"{compute.__module__}.{compute.__qualname__}"

    @wraps(compute)
    def view(history: History) -> T:
        known = history.__dict__
        if name not in known:
            known[name] = compute(history)
        return cast("T", known[name])

    return view


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """The items by key, in their order."""
    found: dict[K, list[T]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


@once
def _by_kind(history: History) -> dict[Kind, list[_Placed]]:
    found: dict[Kind, list[_Placed]] = {}
    for position, event in enumerate(history.events):
        rows = found.get(event.kind)
        if rows is None:
            found[event.kind] = [(position, event)]
        else:
            rows.append((position, event))
    return found


def events_of(history: History, *kinds: Kind) -> list[Event]:
    """The events of these kinds, in the history's order; the list is shared. Most events are reports and operations, so
    looking only at the few others makes a check several times faster."""
    known = _chosen(history)
    found = known.get(kinds)
    if found is None:
        by_kind = _by_kind(history)
        rows = sorted(chain.from_iterable(by_kind[kind] for kind in kinds if kind in by_kind))
        found = known[kinds] = [event for _, event in rows]  # no two positions are equal
    return found


@once
def _chosen(_history: History) -> dict[tuple[Kind, ...], list[Event]]:
    """The results of `events_of` so far, because some checks ask again for each change of a group."""
    return {}


def gave_up(history: History) -> str | None:
    """What the runner was waiting for when it gave up the trial; None if it ran the scenario to its end."""
    missed = events_of(history, Kind.REST_MISSED)
    return str(missed[-1].of("why")) if missed and missed[-1].of("gave_up") is True else None


@once
def closing_phase(history: History) -> Event | None:
    """The PHASE in which the trial begins to shut down its group. Nothing after it is an anomaly."""
    return next((event for event in events_of(history, Kind.PHASE) if event.of("name") == CLOSING), None)


@once
def actor_by_session(history: History) -> Mapping[str | None, str]:
    """Session -> the process that was connected in it."""
    return {event.session: event.actor for event in events_of(history, Kind.CONNECTED)}


@once
def registry(history: History) -> Sequence[Event]:
    """The registry's events in its own order: by zxid, then as the server logged them."""
    return registry_order(history.events)


@once
def beliefs(history: History) -> Sequence[Interval]:
    """`intervals.belief_intervals`."""
    return belief_intervals(history.events)


@once
def owners(history: History) -> Sequence[Interval]:
    """`intervals.registry_intervals`."""
    return registry_intervals(history.events)


@once
def owners_by_place(history: History) -> Mapping[tuple[str, str, int], Sequence[Interval]]:
    """`owners` by (group, topic, partition)."""
    return grouped(owners(history), lambda one: one.place)


@once
def owners_by_member(history: History) -> Mapping[tuple[str, str], Sequence[Interval]]:
    """`owners` by (group, member): groups may have members of the same name."""
    return grouped(owners(history), lambda one: (one.group, one.member))


@once
def effects(history: History) -> Sequence[Interval]:
    """`intervals.effect_intervals`, with the trial's work period for members that reported none."""
    return effect_intervals(history.events, work_period_ms=work_period_ms(history.trial))
