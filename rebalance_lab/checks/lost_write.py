"""A write that was acknowledged is in the log: Jepsen's `lost-write`.

The whole partition is read after the last write and the last fault. A number that was acknowledged must be among what
is read, at the offset that the acknowledgement named, if it named one. Jepsen counts only what lies below the highest
offset that was read; here the read begins after all writes and goes to the log's end, so an acknowledged record beyond
that is lost as well. What is there besides is judged by `duplicate`, `aborted_read` and `garbage_read`.

A read that a fault outlasted decides nothing, unless a record is missing from it already, because the fault may have
taken records after it.

Witness: the acknowledgement of the first number that is lost, and the read.
"""

from __future__ import annotations

from collections.abc import Container

from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, unknown, violated
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.fault_kinds import kind_of
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of
from rebalance_lab.history.writes import PRODUCE, Value, acknowledged, final_read, records_of

#: The subject of one broker and its log, as stored trials name it.
BROKER_LOG = "broker-log"

#: The subject of a replicated partition.
REPLICATION = "replication"


def judge(history: History) -> Finding:
    """Measures: `count`, the numbers that are lost; `acknowledged` and `unanswered` writes."""
    writes, read = acknowledged(history), final_read(history)
    if read is None:
        return unknown(history, "nothing was read after the writes")
    records = set(records_of(read))
    found = {value for _, value in records}
    lost = [each for each in writes if not _is_there(each, records, found)]
    unanswered = [event for event in events_of(history, Kind.INFO) if event.of("op") == PRODUCE]
    numbers = {"count": len(lost), "acknowledged": len(writes), "unanswered": len(unanswered)}
    if lost:
        first = lost[0]
        where = "is elsewhere" if first.of("number") in found else "is not in the log"
        at = "" if first.of("offset") is None else f" at offset {first.of('offset')}"
        why = f"number {first.of('number')} was acknowledged{at} and {where}"
        return violated(why, (first.id, read.id), numbers)
    if (fault := _later_fault(history, read)) is not None:
        return unknown(
            history, f"the log was read before the end of a fault ({fault.of('fault')} of {fault.of('target')})"
        )
    why = f"all {len(writes)} acknowledged writes are in the log"
    return not_violated(history, why, numbers, vacuous=None if writes else "no write was acknowledged")


def _later_fault(history: History, read: Event) -> Event | None:
    """A fault that was not over when the read ended."""
    events = events_of(history, Kind.FAULT_BEGAN, Kind.FAULT_ENDED)
    return next((each for each in events if each.at_us > read.at_us and not kind_of(each).in_controls), None)


def _is_there(write: Event, records: Container[tuple[int, Value]], found: Container[Value]) -> bool:
    """Whether the record of an acknowledged write was read, at its offset if the answer named one. The answer to a
    batch that an idempotent producer repeats need not name any."""
    number = int(str(write.of("number")))
    offset = write.of("offset")
    return number in found if offset is None else (int(str(offset)), number) in records


CHECK = Check(
    name="lost_write",
    compares=(Layer.OP,),
    meaning="A record that the broker acknowledged is no longer in its log.",
    together="The broker said that the record is written, and its log does not have it when all of it is read.",
    plants=(
        Planted("forgets-last-batch", "broker-crash", settings={}),
        Planted("acks-before-replication", "committed-data", settings={"fault": "kill"}),
    ),
    judge=judge,
    applies_to=(BROKER_LOG, REPLICATION),
)
