"""How many bytes of payload reads brought, by what the registry held when they were answered.

A read of a znode brings its data, one of its children their names. What the protocol adds to these is
left out; a look whether a znode exists brings nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rebalance_lab.history.events import Event, EventId, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of, once, registry


@dataclass(slots=True)
class _Sizes:
    """Of one path: at each zxid from which on it is so, its bytes."""

    zxids: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def put(self, zxid: int, size: int) -> None:
        self.zxids.append(zxid)
        self.sizes.append(size)

    @property
    def last(self) -> int:
        return self.sizes[-1] if self.sizes else 0

    def at(self, zxid: int) -> int:
        index = bisect_right(self.zxids, zxid)
        return self.sizes[index - 1] if index else 0


def payload_bytes(history: History, answers: Iterable[Event]) -> int:
    """What the reads among these OK events brought, in bytes."""
    data, names = _sizes(history)
    held = {"get": data, "children": names}
    total = 0
    for answer in answers:
        for operation, path in _reads(history, answer):
            sizes = held.get(operation, {}).get(path)
            total += 0 if sizes is None or answer.zxid is None else sizes.at(answer.zxid)
    return total


def _reads(history: History, answer: Event) -> Sequence[tuple[str, str]]:
    """(operation, path) of each read that it answers."""
    operation = str(answer.of("op"))
    if operation != "multi_read":
        return [(operation, str(answer.of("path")))]
    number = answer.of("of")
    parts = _parts(history).get((answer.actor, number if isinstance(number, int) else -1))
    return [(str(name), str(path)) for name, path in parts or ()]


@once
def _parts(history: History) -> dict[EventId, Sequence[Sequence[object]]]:
    """The parts of each multi-read, by its INVOKED."""
    asked = ((event.id, event.of("parts")) for event in events_of(history, Kind.INVOKED))
    return {name: parts for name, parts in asked if isinstance(parts, list | tuple)}


@once
def _sizes(history: History) -> tuple[dict[str, _Sizes], dict[str, _Sizes]]:
    """Path -> its data, and path -> the names of its children, through the history."""
    data: dict[str, _Sizes] = {}
    names: dict[str, _Sizes] = {}
    for event in registry(history):
        path = event.of("path")
        if event.kind not in {Kind.CREATED, Kind.CHANGED, Kind.DELETED} or not isinstance(path, str):
            continue
        zxid = event.zxid or 0
        content = "" if event.kind is Kind.DELETED else str(event.of("data") or "")
        data.setdefault(path, _Sizes()).put(zxid, len(content.encode()))
        parent, _, name = path.rpartition("/")
        if event.kind is not Kind.CHANGED:
            children = names.setdefault(parent or "/", _Sizes())
            grown = len(name.encode()) if event.kind is Kind.CREATED else -len(name.encode())
            children.put(zxid, children.last + grown)
    return data, names
