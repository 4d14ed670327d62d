"""Which brokers were registered in a span of time, by the registry's events."""

from __future__ import annotations

import re

from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of

_BROKER = re.compile(r"/brokers/ids/(\d+)")


def registered_brokers(history: History, begin: Event, end: Event) -> tuple[int, ...] | None:
    """The brokers that were registered from one event to another, in the order of their ids. None if that changed
    between them, or so close to them that the clocks do not tell."""
    found: set[int] = set()
    for event in events_of(history, Kind.CREATED, Kind.DELETED):
        match = _BROKER.fullmatch(str(event.of("path")))
        if match is None or event.at_us > end.at_us + TOLERANCE_US:
            continue
        if event.at_us >= begin.at_us - TOLERANCE_US:
            return None
        (found.add if event.kind is Kind.CREATED else found.discard)(int(match[1]))
    return tuple(sorted(found))
