"""Operations of ZooKeeper: how many reads and writes an event stands for (the one count of checks and analysis),
and of which processes each operation is recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of, once

#: Operations that read one znode, and those that are one write.
READS = ("get", "children", "exists")
WRITES = ("create", "set", "delete", "multi")

_MULTI_READ = "multi_read"

#: Operations that are neither a read nor a write.
_OTHERS = ("close",)
_KNOWN = frozenset({*READS, *WRITES, _MULTI_READ, *_OTHERS})


def requests(event: Event) -> tuple[int, int]:
    """(reads, writes) of an INVOKED or OPERATIONS; (0, 0) of any other event.

    A multi-read is as many reads as it has parts, a multi is one write. The close of a session is
    neither.
    """
    if event.kind is Kind.INVOKED:
        operation = event.of("op")
        if operation == _MULTI_READ:
            parts = event.of("parts")
            return (len(parts) if isinstance(parts, Sequence) else 1, 0)
        return (int(operation in READS), int(operation in WRITES))
    if event.kind is Kind.OPERATIONS:
        counts = event.of("counts")
        if isinstance(counts, Mapping):
            return (_total(counts, (*READS, "reads")), _total(counts, WRITES))
    return (0, 0)


def uncounted(event: Event) -> str | None:
    """The name of an operation in an INVOKED or OPERATIONS of which `requests` does not know what it costs."""
    counts = event.of("counts") if event.kind is Kind.OPERATIONS else {event.of("op"): 1}
    if not isinstance(counts, Mapping):
        return None
    return next((str(name) for name in counts if name not in _KNOWN and name != "reads"), None)


@once
def recorded_singly(history: History) -> frozenset[str]:
    """The actors whose operations are recorded one by one. Of an actor whose operations are counted (OPERATIONS) only
    the close of a session has an INVOKED and an OK."""
    events = events_of(history, Kind.INVOKED, Kind.OK, Kind.FAILED_OP)
    return frozenset({event.actor for event in events if event.of("op") not in _OTHERS} - only_counted(history))


@once
def only_counted(history: History) -> frozenset[str]:
    """The actors whose operations are counted (OPERATIONS) instead of recorded."""
    return frozenset(event.actor for event in events_of(history, Kind.OPERATIONS))


@once
def counted_deletes(history: History) -> Mapping[str, int]:
    """By actor whose operations are counted: how often it sent a `delete`."""
    found: dict[str, int] = {}
    for event in events_of(history, Kind.OPERATIONS):
        counts = event.of("counts")
        deletes = _total(counts, ("delete",)) if isinstance(counts, Mapping) else 0
        found[event.actor] = found.get(event.actor, 0) + deletes
    return found


def _total(counts: Mapping[object, object], operations: tuple[str, ...]) -> int:
    found = (counts.get(operation) for operation in operations)
    return sum(count for count in found if isinstance(count, int))
