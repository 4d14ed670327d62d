"""Obstacle: another program's ephemeral znode stands where a topic's owner znodes belong.

ZooKeeper allows nothing below an ephemeral znode, so every claim of that topic fails, with another error
than a conflict (defect F7). The proof is the zxids of its create and delete.
"""

from __future__ import annotations

from rebalance_lab.history.fault_kinds import FaultKind
from rebalance_lab.subjects.zk_group.lab import GroupLab
from rebalance_lab.trials.lab import Injection

OBSTACLE = FaultKind(
    name="obstacle",
    noun="obstacle",
    suffers="has a foreign znode where its owner znodes belong",
    many="are obstructed",
    band="obstructed",
    begins="obstructs",
    ends="clears",
    alone="Any program may create a znode anywhere.",
)


class Obstacle:
    """`begin` it before the topic's first claim; `end` removes it."""

    def __init__(self, lab: GroupLab, topic: str) -> None:
        self._lab = lab
        self._topic = topic
        self._fault: Injection | None = None

    async def begin(self) -> None:
        group = self._lab.plan.text("group")
        self._fault = Injection(self._lab, OBSTACLE, self._topic)
        zxid = await self._lab.cluster.obstruct(group, self._topic)
        self._fault.bit(f"zxid {zxid}: an ephemeral znode in the place of the owners of {self._topic}")

    async def end(self) -> None:
        """Remove it, and make the topic's members look again by writing the topic's znode anew."""
        assert self._fault is not None, "begin first"
        lab = self._lab
        await lab.cluster.clear(lab.plan.text("group"), self._topic)
        self._fault.ended()
        await lab.cluster.set_topic(self._topic, lab.cluster.topics[self._topic])
