"""Replicas of one partition hold different records at one offset: Jepsen's `inconsistent-offsets`.

When all replicas are back and in sync, a reader reads each of them from its beginning to its end. Records at the same
offset must be the same: the same number, written in the same leader epoch. A replica may have fewer records than
another, because the last ones may be on their way. But it has no gap: nobody deletes from the middle of a log, so where
a replica has an earlier and a later record, it must also have the one between them that another replica has.

Witness: the reads of the two replicas.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, unknown, violated
from rebalance_lab.history.events import Event, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.replicas import replica_reads
from rebalance_lab.history.writes import named

#: A record of a replica: its leader epoch, and its number, or what its value is if no client wrote it.
Held = tuple[int, int | str]


def judge(history: History) -> Finding:
    """Measures: `count`, offsets at which two replicas differ; `gaps`, those of them at which one has no record;
    `replicas` that were read; `records` of the longest."""
    reads = replica_reads(history)
    if len(reads) < 2:
        return unknown(history, "fewer than two replicas were read")
    held = {broker: _records(read) for broker, read in reads.items()}
    differing = [
        (offset, one, other)
        for one, other in combinations(sorted(held), 2)
        for offset in sorted(_both_reach(held[one], held[other]))
        if held[one].get(offset) != held[other].get(offset)
    ]
    measures = {
        "count": len({offset for offset, _, _ in differing}),
        "gaps": len({offset for offset, *two in differing if any(offset not in held[each] for each in two)}),
        "replicas": len(reads),
        "records": max(map(len, held.values())),
    }
    if differing:
        offset, one, other = min(differing)
        here, there = (_told(held[each].get(offset)) for each in (one, other))
        why = f"offset {offset} has {here} on broker {one}, {there} on {other}"
        return violated(why, (reads[one].id, reads[other].id), measures)
    nothing = None if measures["records"] else "the replicas are empty"
    return not_violated(history, f"{len(reads)} replicas hold the same records", measures, vacuous=nothing)


def _records(read: Event) -> dict[int, Held]:
    records = read.of("records")
    assert isinstance(records, (list, tuple))
    return {int(offset): (int(epoch), number) for offset, epoch, number in records}


def _both_reach(one: Mapping[int, Held], other: Mapping[int, Held]) -> Iterator[int]:
    """The offsets at which one of two replicas has a record, and both have one there or on either side of it."""
    if one and other:
        first, last = max(min(one), min(other)), min(max(one), max(other))
        yield from (offset for offset in one.keys() | other.keys() if first <= offset <= last)


def _told(held: Held | None) -> str:
    return "no record" if held is None else f"{named(held[1])} of leader epoch {held[0]}"


CHECK = Check(
    name="replica_divergence",
    compares=(Layer.OP,),
    meaning="Two replicas of a partition hold different records at one offset, or one has a gap there.",
    together="Both replicas count as in sync, and a reader finds one record or the other, depending on the leader.",
    plants=(Planted("alters-last-record", "committed-data", settings={"fault": "kill"}),),
    judge=judge,
    applies_to=(REPLICATION,),
)
