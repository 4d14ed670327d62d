"""A record is read that nobody wrote: a garbage read (Elle).

The client sends numbers, each in a value of which every byte follows from the number (`roles.values`). A record whose
number it never sent was invented, and a value that is none of its values was damaged on the way, in the log or on the
way back, though the checksum of its batch is right.

Witness: the read.
"""

from __future__ import annotations

from rebalance_lab.checks.lost_write import BROKER_LOG, REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, unknown, violated
from rebalance_lab.history.events import Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.writes import attempts, final_read, named, records_of


def judge(history: History) -> Finding:
    """Measures: `count`, records that nobody wrote; `damaged`, those of them whose value is no number's; `records` that
    were read."""
    read = final_read(history)
    if read is None:
        return unknown(history, "nothing was read after the writes")
    records, sent = records_of(read), attempts(history)
    garbage = [(offset, value) for offset, value in records if value not in sent]
    measures = {
        "count": len(garbage),
        "damaged": sum(isinstance(value, str) for _, value in garbage),
        "records": len(records),
    }
    if garbage:
        offset, value = garbage[0]
        return violated(f"offset {offset} has {named(value)}, which nobody sent", (read.id,), measures)
    why = f"all {len(records)} records are as they were sent"
    return not_violated(history, why, measures, vacuous=None if records else "the log is empty")


CHECK = Check(
    name="garbage_read",
    compares=(Layer.OP,),
    meaning="A record is in the log that no client sent, or with another value than the one that was sent.",
    together="The log has a record that no client sent.",
    plants=(Planted("alters-last-record", "broker-crash", settings={}),),
    judge=judge,
    applies_to=(BROKER_LOG, REPLICATION),
)
