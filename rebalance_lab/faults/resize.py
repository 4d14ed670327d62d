"""Resize: a client asks for another number of a topic's partitions. The proof is that the controller has answered."""

from __future__ import annotations

from rebalance_lab.history.fault_kinds import FaultKind
from rebalance_lab.subjects.replication.subject import ReplicationLab
from rebalance_lab.trials.lab import AnyNode, Injection

RESIZED = FaultKind(
    name="resize",
    noun="change of the number of partitions",
    suffers="asks for another number of partitions",
    many="ask for other numbers of partitions",
    band="asks for partitions",
    begins="asks for partitions:",
    ends="has its answers:",
    alone="Topics get more partitions when they have too few.",
    momentary=True,
    spares_connections=True,
    change=True,
)


async def resized(lab: ReplicationLab, client: AnyNode, requests: int) -> None:
    """Wait until brokers have answered so many requests of a client."""
    fault = Injection(lab, RESIZED, client)
    await lab.resized(requests)
    fault.bit(f"the controller has answered {requests} requests")
    fault.ended()
