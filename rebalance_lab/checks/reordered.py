"""A partition has records in another order than they were sent: Jepsen's `nonmonotonic-send`, seen by the reader.

The client numbers what it sends, and sends the next number only once one is acknowledged, or leaves their order to an
idempotent producer. It reads the whole partition after its last write. Each number stands there for the first time
behind all smaller ones that are there. Later copies of a number may stand anywhere: an attempt without an answer may
arrive late. A number that is missing breaks no order (`lost_write`).

Witness: the first attempts to write the two numbers, and the read.
"""

from __future__ import annotations

from rebalance_lab.checks.lost_write import BROKER_LOG, REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, unknown, violated
from rebalance_lab.history.events import Event, EventId, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of
from rebalance_lab.history.writes import PRODUCE, disordered, final_read, records_of


def judge(history: History) -> Finding:
    """Measures: `count`, numbers that stand behind a larger one; `records` that were read."""
    read = final_read(history)
    if read is None:
        return unknown(history, "nothing was read after the writes")
    wrong = disordered(read)
    records = records_of(read)
    measures = {"count": len(wrong), "records": len(records)}
    if wrong:
        offset, number = wrong[0]
        larger, its_offset = _before(read, number)
        why = f"number {number} is at offset {offset}, behind number {larger} at offset {its_offset}"
        return violated(why, (*_first_attempts(history, number, larger), read.id), measures)
    why = f"{len(records)} records are in the order in which they were sent"
    return not_violated(history, why, measures, vacuous=None if len(records) > 1 else "there is no order")


def _before(read: Event, number: int) -> tuple[int, int]:
    """The first larger number that stands before a number, and its offset."""
    return next((value, at) for at, value in records_of(read) if isinstance(value, int) and value > number)


def _first_attempts(history: History, *numbers: int) -> list[EventId]:
    first: dict[int, EventId] = {}
    for event in events_of(history, Kind.INVOKED):
        if event.of("op") == PRODUCE:
            first.setdefault(int(str(event.of("number"))), event.id)
    return [first[each] for each in numbers if each in first]


CHECK = Check(
    name="reordered",
    compares=(Layer.OP,),
    meaning="A partition has records in another order than the client sent them.",
    together="The client sent one record after the other was acknowledged, and readers see them the other way round.",
    plants=(Planted("swaps-last-batches", "broker-crash", settings={}),),
    judge=judge,
    applies_to=(BROKER_LOG, REPLICATION),
)
