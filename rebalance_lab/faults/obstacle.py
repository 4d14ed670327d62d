"""Obstacle: another program's ephemeral znode stands where a topic's owners belong.

ZooKeeper allows nothing below an ephemeral znode, so every claim of that topic fails, and not by
a conflict (defect F7). The zxids of its coming and going are the proof.
"""

from __future__ import annotations

from rebalance_lab.trials.injection import Injection
from rebalance_lab.trials.lab import Lab

NAME = "obstacle"


class Obstacle:
    """`begin` before the topic's first claim; `end` takes it away."""

    def __init__(self, lab: Lab, topic: str) -> None:
        self._lab = lab
        self._topic = topic
        self._fault: Injection | None = None

    async def begin(self) -> None:
        group = self._lab.plan.text("group")
        self._fault = Injection(self._lab, NAME, self._topic)
        zxid = await self._lab.cluster.obstruct(group, self._topic)
        self._fault.bit(f"zxid {zxid}: an ephemeral znode in the place of the owners of {self._topic}")

    async def end(self) -> None:
        """Take it away, and have the topic's members look again: its znode is written anew."""
        assert self._fault is not None, "begin first"
        lab = self._lab
        await lab.cluster.clear(lab.plan.text("group"), self._topic)
        self._fault.ended()
        await lab.cluster.set_topic(self._topic, lab.cluster.topics[self._topic])
