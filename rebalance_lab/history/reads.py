"""What a reader that reads a partition along records, as `roles.partition_reader` does."""

from __future__ import annotations

from rebalance_lab.history.events import Event, Layer, new_kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of
from rebalance_lab.history.writes import Value

#: A reader has read what is committed, from its position on, which stands behind it then. detail: records, of which
#: each is (offset, leader epoch, number), as in `history.replicas`.
POLLED = new_kind("polled", Layer.EFFECT)

#: A reader's position was moved, and nothing was read. detail: before, offset (the position before and after), cause
#: (out-of-range, truncated).
MOVED = new_kind("moved", Layer.EFFECT)

#: A record as it was read: its offset, its leader epoch, and its number, or what its value is if no client wrote it.
Read = tuple[int, int, Value]


def polls(history: History) -> list[Event]:
    """The POLLED of all readers."""
    return events_of(history, POLLED)


def read_in(poll: Event) -> list[Read]:
    """The records of a POLLED, or those of a read of a whole replica."""
    records = poll.of("records")
    assert isinstance(records, (list, tuple))
    return [(int(offset), int(epoch), value) for offset, epoch, value in records]


def position_before(event: Event) -> int:
    """The position of a reader before a POLLED, which begins at it, or a MOVED."""
    return int(str(event.of("before"))) if event.kind is MOVED else read_in(event)[0][0]


def position_after(event: Event) -> int:
    """The position of a reader after a POLLED or MOVED."""
    return int(str(event.of("offset"))) if event.kind is MOVED else read_in(event)[-1][0] + 1
