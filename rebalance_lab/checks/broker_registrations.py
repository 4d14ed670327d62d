"""Which brokers were registered in a span of time, and in which racks, by the registry's events."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import zip_longest
from typing import NamedTuple

from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of, grouped, once
from rebalance_lab.wire.cluster import read_registration

_BROKER = re.compile(r"/brokers/ids/(\d+)")


def registered_brokers(history: History, begin: Event, end: Event) -> tuple[int, ...] | None:
    """The brokers that were registered from one event to another, in the order of their ids. None if a registration
    changed between them, or so close to them that the clocks do not tell."""
    racks = registered_racks(history, begin, end)
    return None if racks is None else tuple(racks)


def registered_racks(history: History, begin: Event, end: Event) -> Mapping[int, str | None] | None:
    """The rack of each broker that was registered from one event to another, in the order of their ids; a broker
    without a rack has None. None as in `registered_brokers`. Raises KafkaException for a malformed registration."""
    found: dict[int, str | None] = {}
    for broker, event in registration_changes(history):
        if event.at_us > end.at_us + TOLERANCE_US:
            break
        if event.at_us >= begin.at_us - TOLERANCE_US:
            return None
        if event.kind is Kind.DELETED:
            found.pop(broker, None)
        else:
            found[broker] = _rack(broker, event)
    return dict(sorted(found.items()))


@once
def registration_changes(history: History) -> list[tuple[int, Event]]:
    """Every change of a registration, with the broker's id, in the order of their times."""
    found = []
    for event in events_of(history, Kind.CREATED, Kind.CHANGED, Kind.DELETED):
        match = _BROKER.fullmatch(str(event.of("path")))
        if match is not None:
            found.append((int(match[1]), event))
    return sorted(found, key=lambda each: each[1].at_us)


class Registration(NamedTuple):
    """A registration of a broker; `ended`: the event in which its znode went, or None."""

    broker: int
    created: Event
    ended: Event | None

    def stands(self, begin_us: float, end_us: float) -> bool:
        """Whether it is there for all of a time."""
        return self.created.at_us <= begin_us and (self.ended is None or self.ended.at_us > end_us)


@once
def registrations_made(history: History) -> list[Registration]:
    """Every registration; a session may make several, one after the other."""
    found = []
    changes = (each for each in registration_changes(history) if each[1].kind is not Kind.CHANGED)
    for broker, its in grouped(changes, lambda each: each[0]).items():
        for (_, created), (_, ended) in zip_longest(its, its[1:], fillvalue=(broker, None)):
            if created is not None and created.kind is Kind.CREATED:
                found.append(Registration(broker, created, ended))
    return found


def _rack(broker: int, event: Event) -> str | None:
    """The rack of a registration. A broker creates it empty and fills it in the same transaction (`KafkaZkClient`)."""
    data = event.of("data")
    return read_registration(broker, str(data).encode()).rack if data else None
