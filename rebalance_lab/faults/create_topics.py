"""Creation of topics: a client asks brokers for topics. The proof is that brokers have answered for each."""

from __future__ import annotations

from rebalance_lab.history.fault_kinds import FaultKind
from rebalance_lab.subjects.replication.subject import ReplicationLab
from rebalance_lab.trials.lab import Injection
from rebalance_lab.trials.stage import NodeOptions

CREATE_TOPICS = FaultKind(
    name="create-topics",
    noun="creation of topics",
    suffers="asks for topics",
    many="ask for topics",
    band="asks for topics",
    begins="asks for topics:",
    ends="has its answers:",
    alone="Clients ask for topics.",
    momentary=True,
    spares_connections=True,
    change=True,
    in_controls=True,
)


async def create_topics(lab: ReplicationLab, administrator: NodeOptions, topics: int) -> None:
    """Start a client that asks for so many topics, and wait until brokers have created or refused each."""
    fault = Injection(lab, CREATE_TOPICS, "a1")
    lab.start("a1", administrator)
    await lab.created(topics)
    fault.bit(f"brokers have answered for {topics} topics")
    fault.ended()
