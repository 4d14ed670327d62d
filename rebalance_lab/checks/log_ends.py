"""Where the logs of replicas end, as their brokers report."""

from __future__ import annotations

from collections.abc import Iterable

from rebalance_lab.checks.partition_states import Place, place_of
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.intervals import RESTART
from rebalance_lab.history.replicas import APPENDED, FOLLOWS, LEADS, REPLICATED, TRUNCATED

#: The field with the end of the log, of each event that has one.
_ENDS = {LEADS: "end_offset", FOLLOWS: "end_offset", REPLICATED: "end_offset", TRUNCATED: "to_offset"}


class LogEnds:
    """What is known after the events that `take` has been given, in the history's order. A log keeps its end when its
    broker is killed. Once the broker is started again, nothing is known until it has a role: its disk may have lost
    something."""

    #: The events that name an end.
    ENDS = (*_ENDS, APPENDED)

    #: Those that `take` needs.
    KINDS = (*ENDS, Kind.FAULT_BEGAN)

    def __init__(self) -> None:
        self._last: dict[tuple[str, Place], Event] = {}

    def take(self, event: Event) -> None:
        """Take note of an event of KINDS; others say nothing."""
        if event.kind is APPENDED or event.kind in _ENDS:
            self._last[event.actor, place_of(event)] = event
        elif event.kind is Kind.FAULT_BEGAN and event.of("fault") == RESTART:
            self._last = {each: known for each, known in self._last.items() if each[0] != event.of("target")}

    def of(self, actor: str | None, place: Place) -> Event | None:
        """The event that says where a replica's log ends; None if that is not known."""
        return None if actor is None else self._last.get((actor, place))


def replicated_first(events: Iterable[Event]) -> list[Event]:
    """Events in the order of their times, and in each microsecond first what followers have written. A simulated
    network may take no time, and a leader commits what a follower has told it."""
    return sorted(events, key=lambda each: (each.at_us, each.kind is not REPLICATED))


def end_in(event: Event) -> int:
    """The end of the log, of an event that `LogEnds.of` has found."""
    return _number(event, "last") + 1 if event.kind is APPENDED else _number(event, _ENDS[event.kind])


def _number(event: Event, name: str) -> int:
    return int(str(event.of(name)))
