"""Poll skip: a reader has passed a record of the log, and has not read it: Jepsen's `poll-skip`.

A reader reads a partition along. In the end the client reads the whole log. Each record below the position of the
reader, and not below its first one, must be among what it has read, with this value. A record that the reader has read
and that is gone is judged by `changed_read`.

Witness: the reader's first step after the write of the first such record, and the read of the whole log.
"""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, unknown, violated
from rebalance_lab.history.events import Event, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.reads import MOVED, POLLED, polls, position_after, position_before, read_in
from rebalance_lab.history.views import events_of, grouped
from rebalance_lab.history.writes import Value, acknowledged, final_read, named, records_of


def judge(history: History) -> Finding:
    """Measures: `count`, records that were passed and not read; `read`, those that a reader has read; `lag_us`, the
    longest time from the acknowledgement of a record until a reader had read it: Jepsen's `worst-realtime-lag`."""
    end = final_read(history)
    if end is None:
        return unknown(history, "nothing was read after the writes")
    readers = grouped(events_of(history, POLLED, MOVED), lambda event: event.actor)
    passed = [(its, offset, value) for its in readers.values() for offset, value in _passed(its, records_of(end))]
    found = {(event.actor, each) for event in polls(history) for each in read_in(event)}
    measures = {"count": len(passed), "read": len(found), "lag_us": _lag_us(history)}
    if passed:
        its, offset, value = passed[0]
        before, event = _went_on(its, offset, since_us=_written_us(history, offset, value))
        does = "was moved" if event.kind is MOVED else "read on"
        where = f"from offset {before}" if event.kind is POLLED else f"from offset {before} to {position_after(event)}"
        why = f"offset {offset} has {named(value)}, and {event.actor} {does} {where} without having read it"
        return violated(why, (event.id, end.id), measures)
    why = f"the reader has read each record that it passed, {len(found)} in all"
    return not_violated(history, why, measures, vacuous=None if found else "nothing was read")


def _lag_us(history: History) -> int:
    readers = grouped(polls(history), lambda event: event.actor)
    return max((lag_us for its in readers.values() for lag_us in _lags_us(history, its)), default=0)


def _lags_us(history: History, its: list[Event]) -> Iterator[int]:
    """Of each acknowledged record that a reader has read, how long after that it did so for the first time; 0 if it was
    first."""
    first_us = {(offset, value): poll.at_us for poll in reversed(its) for offset, _, value in read_in(poll)}
    for each in acknowledged(history):
        read_us = first_us.get((each.of("offset"), each.of("number")))  # type: ignore[arg-type]
        if read_us is not None:
            yield max(0, read_us - each.at_us)


def _passed(its: list[Event], records: list[tuple[int, Value]]) -> list[tuple[int, Value]]:
    """The records of the log below the last position of a reader that it has not read."""
    read = {(offset, value) for event in its if event.kind is POLLED for offset, _, value in read_in(event)}
    return [each for each in records if each not in read and _start(its) <= each[0] < position_after(its[-1])]


def _start(its: list[Event]) -> int:
    """The first position of a reader."""
    return position_before(its[0])


def _written_us(history: History, offset: int, value: Value) -> int:
    """When a record was acknowledged; 0 if it was not."""
    found = (each for each in acknowledged(history) if (each.of("offset"), each.of("number")) == (offset, value))
    return next((each.at_us for each in found), 0)


def _went_on(its: list[Event], offset: int, *, since_us: int) -> tuple[int, Event]:
    """The first event of a reader since then after which its position is above `offset`, and the position before."""
    event = next((each for each in its if each.at_us >= since_us and position_after(each) > offset), its[-1])
    return position_before(event), event


CHECK = Check(
    name="poll_skip",
    compares=(Layer.EFFECT, Layer.OP),
    meaning="A record is in the log below the position of a reader, and the reader has not read it.",
    together="The reader goes on from its position, so it will never read the record, and nobody tells it.",
    plants=(Planted("never-validates", "truncated-reader", settings={"epochs": "true"}),),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=polls,
)
