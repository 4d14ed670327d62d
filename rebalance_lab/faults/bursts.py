"""Bursts: a producer writes many records at once, again and again. The proof is the largest batch that a leader has
written."""

from __future__ import annotations

from rebalance_lab.history.fault_kinds import FaultKind
from rebalance_lab.subjects.replication.subject import ReplicationLab
from rebalance_lab.trials.lab import AnyNode, Injection

BURSTS = FaultKind(
    name="bursts",
    noun="bursts of a producer",
    suffers="writes many records at once",
    many="write many records at once",
    band="writes in bursts",
    begins="writes in bursts:",
    ends="has written its last burst:",
    alone="Producers collect records, and send them together.",
    momentary=True,
    spares_connections=True,
    change=True,
)


async def bursts(lab: ReplicationLab, client: AnyNode, records: int, limit_ms: int) -> None:
    """Wait until a client has written everything, in batches of so many records; for `limit_ms` at most."""
    fault = Injection(lab, BURSTS, client, records=records)
    await lab.until(lambda: lab.largest_batch >= records, f"a batch of {records} records")
    fault.bit(f"a leader has written {lab.largest_batch} records at once")
    await lab.until(lambda: lab.writes_no_more, "the last burst", limit_ms)
    fault.ended()
