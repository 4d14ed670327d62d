"""Writes to a broker's log and the read of all of it at the end, as `roles.log_client` records them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from rebalance_lab.history.events import Event, Kind, Layer, new_kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of

#: What a broker reports to people: `event`, and what belongs to it. It is here, where checks load it, because whoever
#: reads a history must know its kinds.
REPORTED = new_kind("broker-reported", Layer.OP)

#: The `event` of a broker that has registered. It has the broker_epoch, host and port.
REGISTERED = "registered"

PRODUCE, CONSUME = "produce", "consume"


#: What a read found at an offset: a number, or, in words, a value that is none of the client's.
Value = int | str


def acknowledged(history: History) -> list[Event]:
    """The OK of each write. detail: number, offset (None if the answer named none)."""
    return [event for event in events_of(history, Kind.OK) if event.of("op") == PRODUCE]


def final_read(history: History) -> Event | None:
    """The OK of the read at the end. detail: records, of which each is (offset, number)."""
    found = [event for event in events_of(history, Kind.OK) if event.of("op") == CONSUME]
    return found[-1] if found else None


def records_of(read: Event) -> list[tuple[int, Value]]:
    """The offset and the value of each record that a read found."""
    records = read.of("records")
    assert isinstance(records, (list, tuple))
    return [(int(offset), value) for offset, value in records]


def named(value: Value) -> str:
    """A value in words."""
    return f"number {value}" if isinstance(value, int) else f"a value of no number ({value})"


def disordered(read: Event) -> list[tuple[int, int]]:
    """The offset and the number of each record whose number is there for the first time, and behind a larger one. A
    client that sends a number again until it is acknowledged, or lets an idempotent producer do that, has none."""
    found: list[tuple[int, int]] = []
    seen: set[int] = set()
    largest = 0
    for offset, value in records_of(read):
        if isinstance(value, int) and value not in seen:
            if value < largest:
                found.append((offset, value))
            seen.add(value)
            largest = max(largest, value)
    return found


@dataclass(slots=True)
class Attempts:
    """The attempts to write one number. `refused`: those after which it is not written. `may_be_written`: the others,
    acknowledged or of unknown outcome; of those with one sequence of an idempotent producer only the last, as they are
    one batch, which is written once."""

    refused: list[Event] = field(default_factory=list)
    may_be_written: list[Event] = field(default_factory=list)


def attempts(history: History) -> dict[int, Attempts]:
    """By number. The events are those of INVOKED."""
    refused = {(event.actor, event.of("of")) for event in events_of(history, Kind.FAILED_OP)}
    found: dict[int, Attempts] = defaultdict(Attempts)
    batches: dict[int, dict[object, Event]] = defaultdict(dict)
    for event in events_of(history, Kind.INVOKED):
        if event.of("op") != PRODUCE:
            continue
        number = int(str(event.of("number")))
        if (event.actor, event.n) in refused:
            found[number].refused.append(event)
        else:
            sequence = event.of("sequence")
            batches[number][event.id if sequence is None else tuple(sequence)] = event  # type: ignore[arg-type]
    for number, its in batches.items():
        found[number].may_be_written = list(its.values())
    return dict(found)


@dataclass(frozen=True, slots=True)
class Surplus:
    """A number that a read found more often than it may be written. `offsets`: all of them. `aborted`: as many of the
    records as its refused attempts explain; `repeated`: the others."""

    number: int
    offsets: tuple[int, ...]
    attempts: Attempts
    aborted: int
    repeated: int


def surpluses(history: History, read: Event) -> list[Surplus]:
    """In the order of their numbers. Values of no number, and numbers that nobody sent, are left out."""
    offsets: dict[Value, list[int]] = defaultdict(list)
    for offset, value in records_of(read):
        offsets[value].append(offset)
    found = []
    for number, its in sorted(attempts(history).items()):
        more = len(offsets.get(number, ())) - len(its.may_be_written)
        if more > 0:
            aborted = min(more, len(its.refused))
            found.append(Surplus(number, tuple(offsets[number]), its, aborted, more - aborted))
    return found
