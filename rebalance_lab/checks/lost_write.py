"""A write that was acknowledged is in the log: Jepsen's `lost-write`.

The client reads the whole partition after its last write. A number that was acknowledged must be among what it reads,
at the offset that the acknowledgement named. Jepsen counts only what lies below the highest offset that was read; here
the read begins after all writes and goes to the log's end, so an acknowledged record beyond that is lost as well. What
is there besides is judged by `duplicate`, `aborted_read` and `garbage_read`.

Witness: the acknowledgement of the first number that is lost, and the read.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, unknown, violated
from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of
from rebalance_lab.history.writes import PRODUCE, acknowledged, final_read, records_of

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
    found = {number for _, number in records}
    lost = [event for event in writes if (event.of("offset"), event.of("number")) not in records]
    unanswered = [event for event in events_of(history, Kind.INFO) if event.of("op") == PRODUCE]
    numbers = {"count": len(lost), "acknowledged": len(writes), "unanswered": len(unanswered)}
    if lost:
        first = lost[0]
        where = "is elsewhere" if first.of("number") in found else "is not in the log"
        why = f"number {first.of('number')} was acknowledged at offset {first.of('offset')} and {where}"
        return violated(why, (first.id, read.id), numbers)
    why = f"all {len(writes)} acknowledged writes are in the log"
    return not_violated(history, why, numbers, vacuous=None if writes else "no write was acknowledged")


CHECK = Check(
    name="lost_write",
    compares=(Layer.OP,),
    meaning="A record that the broker acknowledged is no longer in its log.",
    together="The broker said that the record is written, and its log does not have it when all of it is read.",
    plants=(Planted("forgets-last-batch", "broker-crash", settings={}),),
    judge=judge,
    applies_to=(BROKER_LOG, REPLICATION),
)
