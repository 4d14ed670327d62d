"""What the registry tells of brokers and topics while a history goes by."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from rebalance_lab.history.events import Event, Kind

_BROKERS = "/brokers/ids/"


class _TopicData(msgspec.Struct):
    """Of the payload of `/brokers/topics/T` (facts of zkconsumer, 1.3), what is needed here."""

    partitions: dict[str, object] = {}


@dataclass(slots=True)
class RegistryView:
    """Feed it a history's CREATED, CHANGED and DELETED, in merge order.

    `brokers`: ids now registered. `partitions`: topic -> partition -> time in µs when its znode
    first told it (deleted topics stay: their partitions were there to be owned).
    """

    brokers: set[str] = field(default_factory=set)
    partitions: dict[str, dict[int, int]] = field(default_factory=dict)

    def feed(self, event: Event) -> None:
        path = event.of("path")
        if isinstance(path, str) and path.startswith(_BROKERS):
            change = self.brokers.discard if event.kind is Kind.DELETED else self.brokers.add
            change(path.removeprefix(_BROKERS))
        elif event.topic is not None and event.partition is None and event.kind is not Kind.DELETED:
            known = self.partitions.setdefault(event.topic, {})
            for number in _partitions(event.of("data")):
                known.setdefault(number, event.at_us)


def _partitions(data: object) -> list[int]:
    """Those of a topic's payload; none where it is no such payload (children of a topic's znode
    name their topic too)."""
    if not isinstance(data, str):
        return []
    try:
        found = msgspec.json.decode(data, type=_TopicData).partitions
    except msgspec.DecodeError:
        return []
    return [int(number) for number in found if number.isdecimal()]
