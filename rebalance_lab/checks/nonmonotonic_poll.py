"""Nonmonotonic poll: a reader goes back in a log that was not cut: Jepsen's `nonmonotonic-poll`.

A reader reads a partition along. Each poll goes on at its position or above, and within a poll the offsets rise
(`int-nonmonotonic-poll`), as they do in the read of the whole log at the end. A reader goes back only where its
position is moved, and it is moved back only because the log was cut below it: a leader of a later epoch than that of
the last record that was read began with a shorter log. A reader that knows leader epochs goes back to where that log
ended, and no further; one whose position is out of range begins where `auto.offset.reset` says. What a reader leaves
out is judged by `poll_skip`.

Witness: what the reader did before, and the poll or the move that goes back; or the one read that does.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.checks.lost_write import BROKER_LOG, REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.partition_states import place_of
from rebalance_lab.history.events import Event, EventId, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.reads import MOVED, POLLED, polls, position_after, position_before, read_in
from rebalance_lab.history.replicas import LEADS
from rebalance_lab.history.views import events_of, grouped
from rebalance_lab.history.writes import final_read, records_of

#: The cause of a move by which a reader that knows leader epochs goes back (`client.consumer`).
_BY_TRUNCATION = "truncated"


class Back(NamedTuple):
    """A reader has gone back."""

    why: str
    witness: tuple[EventId, ...]


def judge(history: History) -> Finding:
    """Measures: `count`, steps back; `again`, records that a reader along has read more than once; `moves` of
    positions; `read`, all reads of records."""
    along = [(event.actor, each) for event in polls(history) for each in read_in(event)]
    end = final_read(history)
    found = list(_found(history))
    measures = {
        "count": len(found),
        "again": len(along) - len(set(along)),
        "moves": len(events_of(history, MOVED)),
        "read": len(along) + (0 if end is None else len(records_of(end))),
    }
    if found:
        return violated(*found[0], measures)
    why = f"no reader went back in a log that was not cut, in {measures['read']} reads"
    return not_violated(history, why, measures, vacuous=None if measures["read"] else "nothing was read")


def _found(history: History) -> Iterator[Back]:
    for its in grouped(events_of(history, POLLED, MOVED), lambda event: event.actor).values():
        yield from _of_reader(history, its)
    end = final_read(history)
    if end is not None:
        yield from _within(end, [offset for offset, _ in records_of(end)])


def _of_reader(history: History, its: list[Event]) -> Iterator[Back]:
    last_poll: Event | None = None
    before: Event | None = None
    for event in its:
        if before is not None and position_before(event) < position_after(before):
            why = f"{event.actor} went on at offset {position_before(event)}, and its position was"
            yield Back(f"{why} {position_after(before)}", (before.id, event.id))
        if event.kind is POLLED:
            yield from _within(event, [offset for offset, *_ in read_in(event)])
            last_poll = event
        elif last_poll is not None and not _has_cause(history, event, last_poll):
            yield Back(_told(event), (last_poll.id, event.id))
        before = event


def _within(read: Event, offsets: list[int]) -> Iterator[Back]:
    for one, other in pairwise(offsets):
        if other <= one:
            yield Back(f"{read.actor} read offset {other} after offset {one}, in one read", (read.id,))


def _has_cause(history: History, moved: Event, last_poll: Event) -> bool:
    """Whether the log was cut far enough for a move, if it goes back. `last_poll`: the last one before it."""
    if position_after(moved) >= position_before(moved):
        return True
    _, epoch, _ = read_in(last_poll)[-1]
    ends = [
        int(str(each.of("end_offset")))
        for each in events_of(history, LEADS)
        if place_of(each) == place_of(moved)
        and int(str(each.of("leader_epoch"))) > epoch
        and each.at_us <= moved.at_us + TOLERANCE_US
    ]
    return any(end < position_before(moved) and (end <= position_after(moved) or not _asked(moved)) for end in ends)


def _asked(moved: Event) -> bool:
    """Whether the reader has asked where its last leader epoch ended."""
    return moved.of("cause") == _BY_TRUNCATION


def _told(moved: Event) -> str:
    ended = f"at {position_after(moved)} or below" if _asked(moved) else "below that"
    where = f"from offset {position_before(moved)} to {position_after(moved)}"
    return f"{moved.actor} was moved {where}, and no later leader began with a log that ended {ended}"


def _reads(history: History) -> bool:
    return bool(polls(history)) or final_read(history) is not None


CHECK = Check(
    name="nonmonotonic_poll",
    compares=(Layer.EFFECT, Layer.OP, Layer.BELIEF),
    meaning="A reader reads an offset after a higher one, and no leader began with a shorter log meanwhile.",
    together="The reader acts on the record once more, and nothing has changed that would ask for it.",
    plants=(Planted("goes-back-a-record", "committed-data", settings={"reader": "true", "fault": "kill"}),),
    judge=judge,
    applies_to=(BROKER_LOG, REPLICATION),
    looks_at=_reads,
)
