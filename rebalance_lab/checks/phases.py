"""Where checks about changes look: from the first rest until the phase `closing`.

What happens while a group is first assembled, or is taken down, is not judged. A control, in which
nothing changes after the first rest, is therefore clean.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.history.events import Event, EventId, Kind, order
from rebalance_lab.history.files import History
from rebalance_lab.history.views import closing_phase, events_of, once

#: Said by checks that found no place to look at.
NO_REST = "the group never came to rest, so no change was looked at"


@dataclass(frozen=True, slots=True)
class Scope:
    """`rest`: the first REST_REACHED. `end_us`, `end`: the phase `closing`; None and the time of
    the last event where the history ends first."""

    rest: Event
    end_us: int
    end: EventId | None

    def holds(self, event: Event) -> bool:
        """Whether an event is surely in it. The registry's times may be 2 ms early: what it tells of
        just before the rest came after it, as a quiet time precedes that, and what it tells of just
        before the phase `closing` may be of that phase."""
        spare_us = 0 if self.end is None else TOLERANCE_US
        return self.rest.at_us - TOLERANCE_US <= event.at_us <= self.end_us - spare_us


@once
def changes_scope(history: History) -> Scope | None:
    """None where the group never rested before it was taken down."""
    rests = rests_of(history)
    if not rests:
        return None
    end_us, end = closing_us(history)
    return Scope(rests[0], end_us, end)


@once
def rests_of(history: History) -> Sequence[Event]:
    """Every REST_REACHED before the phase `closing`."""
    end_us, _ = closing_us(history)
    return [event for event in events_of(history, Kind.REST_REACHED) if event.at_us <= end_us]


def next_rest(history: History, moment: Event) -> Event | None:
    """The rest that ends what a PHASE began, which may be of the same microsecond. None where it
    was missed: a rest in a later phase is that phase's."""
    ends = events_of(history, Kind.PHASE, Kind.REST_REACHED, Kind.REST_MISSED)
    index = bisect_right(ends, order(moment), key=order)
    return ends[index] if index < len(ends) and ends[index].kind is Kind.REST_REACHED else None


@once
def closing_us(history: History) -> tuple[int, EventId | None]:
    """When the group begins to be taken down, and the event that says so: the history's last
    moment and None where none does."""
    closing = closing_phase(history)
    if closing is not None:
        return closing.at_us, closing.id
    return (history.events[-1].at_us if history.events else 0), None
