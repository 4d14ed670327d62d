"""A record is in the log more often than it was sent: Jepsen's `duplicate`.

The client reads the whole partition after its last write. It finds each number at most once for each attempt that was
acknowledged or whose outcome is unknown: a producer that is not idempotent sends a number again when it had no answer,
and then both may be there. An idempotent one (KIP-98) repeats a batch under its sequence, and attempts with the same
sequence count once, however many they are. What a refused attempt explains is an `aborted_read`.

Witness: the attempts that may be written, and the read.
"""

from __future__ import annotations

from collections import Counter

from rebalance_lab.checks.lost_write import BROKER_LOG, REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, unknown, violated
from rebalance_lab.history.events import Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.writes import final_read, records_of, surpluses


def judge(history: History) -> Finding:
    """Measures: `count`, records that are too many; `repeats`, all records beyond the first of each number, also those
    that may be there; `records` that were read."""
    read = final_read(history)
    if read is None:
        return unknown(history, "nothing was read after the writes")
    found = Counter(value for _, value in records_of(read))
    repeated = [each for each in surpluses(history, read) if each.repeated]
    measures = {
        "count": sum(each.repeated for each in repeated),
        "repeats": found.total() - len(found),
        "records": found.total(),
    }
    if repeated:
        first = repeated[0]
        why = (
            f"number {first.number} is at offsets {', '.join(map(str, first.offsets))}; "
            f"it may be there {len(first.attempts.may_be_written)} times"
        )
        return violated(why, (*(event.id for event in first.attempts.may_be_written), read.id), measures)
    why = f"none of {found.total()} records is there more often than it was sent"
    return not_violated(history, why, measures, vacuous=None if found else "the log is empty")


CHECK = Check(
    name="duplicate",
    compares=(Layer.OP,),
    meaning="A record is in the log more often than the client sent it.",
    together="The client sent the record so often, and the log has it more often when all of it is read.",
    plants=(
        Planted("repeats-last-batch", "broker-crash", settings={}),
        Planted("repeats-last-batch", "broker-crash", settings={"idempotent": "true"}),
    ),
    judge=judge,
    applies_to=(BROKER_LOG, REPLICATION),
)
