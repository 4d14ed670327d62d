"""Replicas of one partition hold different records at one offset: Jepsen's `inconsistent-offsets`.

When all replicas are back and in sync, a reader reads each of them from its beginning to its end. Records at the same
offset must be the same: the same number, written in the same leader epoch. A replica may have fewer records than
another, because the last ones may be on their way.

Witness: the reads of the two replicas.
"""

from __future__ import annotations

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
    """Measures: `count`, offsets at which two replicas differ; `replicas` that were read; `records` of the longest."""
    reads = replica_reads(history)
    if len(reads) < 2:
        return unknown(history, "fewer than two replicas were read")
    held = {broker: _records(read) for broker, read in reads.items()}
    differing = [
        (offset, one, other)
        for one, other in combinations(sorted(held), 2)
        for offset in sorted(held[one].keys() & held[other].keys())
        if held[one][offset] != held[other][offset]
    ]
    measures = {
        "count": len({offset for offset, _, _ in differing}),
        "replicas": len(reads),
        "records": max(map(len, held.values())),
    }
    if differing:
        offset, one, other = min(differing)
        why = f"offset {offset} has {_told(held[one][offset])} on broker {one}, {_told(held[other][offset])} on {other}"
        return violated(why, (reads[one].id, reads[other].id), measures)
    nothing = None if measures["records"] else "the replicas are empty"
    return not_violated(history, f"{len(reads)} replicas hold the same records", measures, vacuous=nothing)


def _records(read: Event) -> dict[int, Held]:
    records = read.of("records")
    assert isinstance(records, (list, tuple))
    return {int(offset): (int(epoch), number) for offset, epoch, number in records}


def _told(held: Held) -> str:
    return f"{named(held[1])} of leader epoch {held[0]}"


CHECK = Check(
    name="replica_divergence",
    compares=(Layer.OP,),
    meaning="Two replicas of a partition hold different records at one offset.",
    together="Both replicas count as in sync, and a reader finds one record or the other, depending on the leader.",
    plants=(Planted("alters-last-record", "committed-data", settings={"fault": "kill"}),),
    judge=judge,
    applies_to=(REPLICATION,),
)
