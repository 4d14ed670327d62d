"""Rests and phases, and the period in which checks about changes look: from the first rest until the phase `closing`.

What happens while a group first forms or is taken down is not judged. A control, in which nothing changes after the
first rest, is therefore clean.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.history.events import Event, EventId, Kind, order
from rebalance_lab.history.files import History
from rebalance_lab.history.views import closing_phase, events_of, once

#: The reason of checks if there is no such period.
NO_REST = "the group never came to rest, so no change was looked at"


@dataclass(frozen=True, slots=True)
class JudgedPeriod:
    """`rest`: the first REST_REACHED. `end_us`, `end`: the phase `closing`; if the history ends first, the time of its
    last event and None."""

    rest: Event
    end_us: int
    end: EventId | None

    def holds(self, event: Event) -> bool:
        """Whether an event is surely in it. The registry's times may be 2 ms early: an event just before the rest came
        after it, because a quiet time precedes a rest; one just before the phase `closing` may be of that phase."""
        spare_us = 0 if self.end is None else TOLERANCE_US
        return self.rest.at_us - TOLERANCE_US <= event.at_us <= self.end_us - spare_us


@once
def judged_period(history: History) -> JudgedPeriod | None:
    """None if the group never rested before it was taken down."""
    rests = rests_of(history)
    if not rests:
        return None
    end_us, end = closing_us(history)
    return JudgedPeriod(rests[0], end_us, end)


@once
def rests_of(history: History) -> Sequence[Event]:
    """Every REST_REACHED before the phase `closing`."""
    end_us, _ = closing_us(history)
    return [event for event in events_of(history, Kind.REST_REACHED) if event.at_us <= end_us]


def before_closing(history: History, event: Event) -> bool:
    """Whether a node recorded an event surely before it was taken down, which in virtual time begins in the microsecond
    of the phase `closing`."""
    end_us, end = closing_us(history)
    return end is None or event.at_us < end_us


def next_rest(history: History, moment: Event) -> Event | None:
    """The rest that ends the phase of a PHASE, possibly in the same microsecond. None if it was missed: a rest in a
    later phase belongs to that one."""
    ends = events_of(history, Kind.PHASE, Kind.REST_REACHED, Kind.REST_MISSED)
    index = bisect_right(ends, order(moment), key=order)
    return ends[index] if index < len(ends) and ends[index].kind is Kind.REST_REACHED else None


def published_phases(history: History) -> list[Event]:
    """Each PHASE that says what is published of ownership at its end."""
    return [event for event in events_of(history, Kind.PHASE) if event.of("published") is not None]


def published_rests(history: History) -> list[tuple[Event, Event]]:
    """Those that came to rest, with the rest."""
    phases = published_phases(history)
    return [(phase, rest) for phase in phases if (rest := next_rest(history, phase)) is not None]


@once
def closing_us(history: History) -> tuple[int, EventId | None]:
    """When the group begins to be taken down, and the event of it; if there is none, the history's last moment and
    None."""
    closing = closing_phase(history)
    if closing is not None:
        return closing.at_us, closing.id
    return (history.events[-1].at_us if history.events else 0), None
