"""Changes of the cluster: topics are created and grow, brokers come and go.

Each is one write of the runner. Its zxid proves that it happened.
"""

from __future__ import annotations

from rebalance_lab.subjects.zk_group.lab import GroupLab
from rebalance_lab.trials.injection import Injection

TOPIC = "topic"
BROKER = "broker"


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
