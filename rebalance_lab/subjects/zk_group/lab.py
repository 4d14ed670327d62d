"""The lab of a consumer group: members, a topic, and the cluster's znodes."""

from __future__ import annotations

from collections.abc import Mapping

from rebalance_lab.history.rest import MemberState
from rebalance_lab.subjects.zk_group.cluster import Cluster
from rebalance_lab.subjects.zk_group.options import AS_PLANNED, MemberOptions
from rebalance_lab.trials.lab import QUIET_LEAST_MS, Lab, NodeHandle
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.stage import Stage

__all__ = ["GroupLab", "MemberHandle"]

MemberHandle = NodeHandle[MemberOptions, MemberState]


class GroupLab(Lab[MemberOptions, MemberState]):
    """The interface for scripts about a group. `members` are its nodes; `cluster`: the runner's own session, and what
    it has written."""

    def __init__(self, plan: Plan, stage: Stage) -> None:
        super().__init__(plan, stage)
        self.group = plan.text("group")
        self.members = self.nodes
        self.cluster = Cluster(stage.zookeeper, stage.recorder, servers=len(stage.servers.names))

    @property
    def quiet_ms(self) -> int:
        """Two back-offs: a member that waits for its next attempt has not finished."""
        return max(2 * self.plan.number("rebalance_backoff_ms"), QUIET_LEAST_MS)

    async def prepare(self, topics: Mapping[str, int] | None = None) -> None:
        """Write the znodes that members need: brokers, and topics with their partitions (by default the plan's
        topic)."""
        await self.connected()
        planned = {self.plan.text("topic"): self.plan.number("partitions")}
        brokers = self.plan.number("brokers")
        real = await self._stage.start_brokers(brokers)
        await self.cluster.prepare(brokers, planned if topics is None else topics, real=real)
        await self.cluster.add_group(self.plan.text("group"))

    async def assemble(
        self, first: MemberOptions | None = None, others: MemberOptions = AS_PLANNED
    ) -> list[MemberHandle]:
        """Begin a trial: write the znodes, start the plan's members, and wait until they are at rest. `first`: how the
        first member differs from the others; it then starts before them."""
        await self.prepare()
        self.phase("joining")
        members = [] if first is None else [await self.start_member(first)]
        members += await self.start_members(self.plan.number("members") - len(members), others)
        await self.rest("joined")
        return members

    async def start_member(self, options: MemberOptions = AS_PLANNED, *, wait: bool = True) -> MemberHandle:
        """Start the next member (m1, m2, …). Wait until its first rebalance has ended, successful or not, or its
        settings were refused. With `wait` false only start it."""
        if options.group:
            await self.cluster.add_group(options.group)
        member = self.start(f"m{len(self.members) + 1}", options)
        if wait:
            await self.first_rebalance(member)
        return member

    async def start_members(self, count: int, options: MemberOptions = AS_PLANNED) -> list[MemberHandle]:
        """Start `count` members, one after another or all at once (parameter `together`)."""
        together = self.plan.switch("together")
        members = [await self.start_member(options, wait=not together) for _ in range(count)]
        for member in members if together else ():
            await self.first_rebalance(member)
        return members

    async def first_rebalance(self, member: MemberHandle) -> None:
        """Wait until a member's first rebalance has ended, successful or not."""
        await self.until(
            lambda: member.started and (member.state.rebalances > 0 or member.state.refused),
            f"the first rebalance of {member.actor}",
        )

    async def claimed(self, partition: int, limit_ms: int) -> None:
        """Wait until a member has claimed a partition of the plan's topic. Raises GaveUp after `limit_ms`."""
        group, topic = self.plan.text("group"), self.plan.text("topic")
        async with self._bounded(f"a claim of {topic}/{partition}", limit_ms):
            await self.cluster.claimed(group, topic, partition)

    async def observe(self) -> None:
        """Read registrations and owners of every group with the runner's own session."""
        await self.cluster.observe()

    async def left(self, node: MemberHandle) -> None:
        """Wait until a member has closed, and its session has ended."""
        closed_sessions = self._stage.tracker.closed_sessions
        await self.until(
            lambda: node.state.gone and node.state.busy(closed_sessions) is None, f"the clean leave of {node.actor}"
        )
