"""Changed read: a record that a reader has read is not in the log, or another one is at its offset (consistent read).

A reader reads a partition along. In the end each replica is read, once all are in sync. What was read must be in each
replica, at its offset, in its leader epoch, with its value: only what is committed can be read, and that stays. This
asks more than `lost_write`, which looks only at what was acknowledged to a client, and at the replica that leads.

Witness: the first read of the record, and the read of a replica that does not have it.
"""

from __future__ import annotations

from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, unknown, violated
from rebalance_lab.history.events import Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.reads import Read, polls, read_in
from rebalance_lab.history.replicas import replica_reads
from rebalance_lab.history.writes import named


def judge(history: History) -> Finding:
    """Measures: `count`, records that were read and are not in each replica; `read`, records that were read."""
    replicas = replica_reads(history)
    if not replicas:
        return unknown(history, "no replica was read")
    first = {each: poll for poll in reversed(polls(history)) for each in read_in(poll)}
    held = {broker: {offset: (offset, *rest) for offset, *rest in read_in(it)} for broker, it in replicas.items()}
    changed = sorted(each for each in first if any(its.get(each[0]) != each for its in held.values()))
    measures = {"count": len(changed), "read": len(first)}
    if changed:
        each = changed[0]
        broker = min(broker for broker, its in held.items() if its.get(each[0]) != each)
        now = held[broker].get(each[0])
        has = "nothing" if now is None else _told(now)  # type: ignore[arg-type]
        why = f"{first[each].actor} read {_told(each)} at offset {each[0]}, and broker {broker} has {has} there"
        return violated(why, (first[each].id, replicas[broker].id), measures)
    why = f"all {len(first)} records that were read are in {len(replicas)} replicas"
    return not_violated(history, why, measures)


def _told(record: Read) -> str:
    _, epoch, value = record
    return f"{named(value)} of leader epoch {epoch}"


CHECK = Check(
    name="changed_read",
    compares=(Layer.EFFECT, Layer.OP),
    meaning="A record that a reader has read is no longer in the log, or another one is at its offset.",
    together="The reader has acted on a record which nobody will ever read again.",
    plants=(Planted("alters-last-record", "truncated-reader", settings={"unclean": "false"}),),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=polls,
)
