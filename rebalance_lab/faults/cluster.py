"""Changes of the cluster: topics are created and grow, brokers come and go.

Each is one write of the runner. Its zxid proves that it happened.
"""

from __future__ import annotations

from dataclasses import replace

from rebalance_lab.history.events import Event
from rebalance_lab.history.fault_kinds import FaultKind
from rebalance_lab.subjects.zk_group.lab import GroupLab
from rebalance_lab.trials.lab import Injection


def _topic_kind(kind: FaultKind, event: Event) -> FaultKind:
    partitions = event.of("partitions")
    suffers = f"grows to {partitions} partitions" if event.of("before") else f"comes, with {partitions} partitions"
    return replace(kind, suffers=suffers, band=f"has {partitions}")


def _broker_kind(kind: FaultKind, event: Event) -> FaultKind:
    if event.of("comes") is False:
        return replace(kind, suffers="goes", many="go", band="goes", begins="goes:")
    return kind


TOPIC = FaultKind(
    name="topic",
    noun="change",
    suffers="changes",
    many="change",
    band="changes",
    begins="topic:",
    alone="A topic gets more partitions when it has too few.",
    momentary=True,
    spares_connections=True,
    in_controls=True,
    change=True,
    of_event=_topic_kind,
)
BROKER = FaultKind(
    name="broker",
    noun="change",
    suffers="comes",
    many="come",
    band="comes",
    begins="comes:",
    alone="Brokers come and go, as machines do.",
    momentary=True,
    spares_connections=True,
    in_controls=True,
    change=True,
    of_event=_broker_kind,
)


async def set_topic(lab: GroupLab, topic: str, partitions: int) -> None:
    """Create a topic, or let it grow to `partitions`."""
    before = lab.cluster.topics.get(topic, 0)
    fault = Injection(lab, TOPIC, topic, before=before, partitions=partitions)
    zxid = await lab.cluster.set_topic(topic, partitions)
    fault.bit(f"zxid {zxid}: topic {topic} has {partitions} partitions, before {before}")
    fault.ended()


async def add_broker(lab: GroupLab, broker: int) -> None:
    """Create a broker's znode."""
    fault = Injection(lab, BROKER, f"broker {broker}", comes=True)
    fault.bit(f"zxid {await lab.cluster.add_broker(broker)}: broker {broker} created")
    fault.ended()


async def remove_broker(lab: GroupLab, broker: int) -> None:
    """Delete a broker's znode."""
    fault = Injection(lab, BROKER, f"broker {broker}", comes=False)
    fault.bit(f"zxid {await lab.cluster.remove_broker(broker)}: broker {broker} deleted")
    fault.ended()
