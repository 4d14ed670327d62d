"""Writes to a broker's log and the read of all of it at the end, as `roles.log_client` records them."""

from __future__ import annotations

from rebalance_lab.history.events import Event, Kind, Layer, new_kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of

#: What a broker reports to people: `event`, and what belongs to it. It is here, where checks load it, because whoever
#: reads a history must know its kinds.
REPORTED = new_kind("broker-reported", Layer.OP)

PRODUCE, CONSUME = "produce", "consume"


def acknowledged(history: History) -> list[Event]:
    """The OK of each write. detail: number, offset."""
    return [event for event in events_of(history, Kind.OK) if event.of("op") == PRODUCE]


def final_read(history: History) -> Event | None:
    """The OK of the read at the end. detail: records, of which each is (offset, number)."""
    found = [event for event in events_of(history, Kind.OK) if event.of("op") == CONSUME]
    return found[-1] if found else None


def records_of(read: Event) -> list[tuple[int, int]]:
    """The offset and the number of each record that a read found."""
    records = read.of("records")
    assert isinstance(records, (list, tuple))
    return [(int(offset), int(number)) for offset, number in records]
