"""A write that was refused is read: Jepsen's `G1a`, an aborted read (Adya).

A refusal says that the record is not in the log, and will not be: NOT_ENOUGH_REPLICAS, for example, is answered before
the append. Errors after which the record may be there all the same, such as REQUEST_TIMED_OUT, refuse nothing
(`roles.log_client` tells them apart). A number may be read as often as it was acknowledged or its outcome is unknown;
what is read beyond that, up to the number of refusals, is a refused write.

Witness: the refused attempts, and the read.
"""

from __future__ import annotations

from rebalance_lab.checks.lost_write import BROKER_LOG, REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, unknown, violated
from rebalance_lab.history.events import Event, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.writes import attempts, final_read, surpluses


def judge(history: History) -> Finding:
    """Measures: `count`, refused writes that were read; `refused`, all of them."""
    read = final_read(history)
    if read is None:
        return unknown(history, "nothing was read after the writes")
    aborted = [each for each in surpluses(history, read) if each.aborted]
    measures = {
        "count": sum(each.aborted for each in aborted),
        "refused": len(refusals(history)),
    }
    if aborted:
        first = aborted[0]
        offsets = ", ".join(map(str, first.offsets))
        times = len(first.attempts.may_be_written)
        why = f"number {first.number} was refused, and is at offset {offsets}; it may be there {times} times"
        return violated(why, (*(event.id for event in first.attempts.refused), read.id), measures)
    return not_violated(history, f"none of {measures['refused']} refused writes was read", measures)


def refusals(history: History) -> list[Event]:
    """The attempts that were refused."""
    return [event for each in attempts(history).values() for event in each.refused]


CHECK = Check(
    name="aborted_read",
    compares=(Layer.OP,),
    meaning="A record that the broker refused to write is in its log.",
    together="The broker said that the record is not written, and its log has it when all of it is read.",
    plants=(Planted("refuses-after-append", "committed-data", settings={"fault": "kill", "victims": "2"}),),
    judge=judge,
    applies_to=(BROKER_LOG, REPLICATION),
    looks_at=refusals,
)
