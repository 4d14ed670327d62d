"""The lab of a consumer group: how its members are started, and what a script says to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from rebalance_lab.history.rest import MemberState
from rebalance_lab.roles.member import MemberSpec
from rebalance_lab.subjects.zk_group.cluster import Cluster
from rebalance_lab.trials.lab import QUIET_LEAST_MS, Lab, NodeHandle
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.stage import NodeOptions, Stage, TrialError
from zkconsumer.config import ConsumerConfig
from zkconsumer.lab_settings import NO_LAB_SETTINGS, LabSettings


def whitelist_of(spec: MemberSpec) -> str:
    """The white list of a real member, which has one filter with one stream. A topic's name is such a filter, too.
    Raises TrialError for any other subscription (kafka.tools.ConsoleConsumer, 0.8.2.2)."""
    if spec.whitelist is not None and spec.filter_streams == 1:
        return spec.whitelist
    if spec.whitelist is None and spec.blacklist is None and list(spec.streams.values()) == [1]:
        return next(iter(spec.streams))
    raise TrialError(f"{spec.actor}: a real member (ConsoleConsumer) has one stream, of one topic or white list")


def stand_in(spec: MemberSpec) -> MemberSpec:
    """The member that the simulator starts for a spec: for a real member one of ours, as shipped, with the same white
    list; otherwise the member itself. Raises TrialError if no real member could subscribe like that."""
    if not spec.real:
        return spec
    return msgspec.structs.replace(spec, real=False, streams={}, whitelist=whitelist_of(spec))


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberOptions(NodeOptions):
    """How one member differs from the plan's settings for all members. None and empty mean: as in the plan.

    - `group`: "" means that the member names no group; the rule set decides what follows (claim Z14).
    - `streams`: topic -> stream count of a static subscription; or `whitelist`, `blacklist`: a filter, with
      `filter_streams` streams.
    - `fetcher_stop_ms`: how long its fetchers take to stop.
    - `consumer_id`: Kafka's setting consumer.id. `lab`: the lab's own settings.
    """

    group: str | None = None
    rules: str | None = None
    real: bool = False
    assignor: str | None = None
    streams: Mapping[str, int] | None = None
    whitelist: str | None = None
    blacklist: str | None = None
    filter_streams: int = 1
    fetcher_stop_ms: int | None = None
    consumer_id: str | None = None
    lab: LabSettings = NO_LAB_SETTINGS

    def __post_init__(self) -> None:
        given = [each for each in (self.streams, self.whitelist, self.blacklist) if each is not None]
        if len(given) > 1:
            raise ValueError("a member subscribes by topics, or by a white list, or by a black list")

    def spec(self, plan: Plan, actor: str, *, connect: str, events: str) -> MemberSpec:
        """The start data of the plan's member `actor`. Raises TrialError for what a real member cannot do."""
        group = plan.text("group") if self.group is None else self.group
        config = ConsumerConfig(
            zookeeper_connect=connect,
            zookeeper_session_timeout_ms=plan.number("session_timeout_ms"),
            zookeeper_connection_timeout_ms=plan.number("session_timeout_ms"),
            group_id=group,
            group_given=group != "",
            consumer_id=self.consumer_id,
            rebalance_backoff_ms=plan.number("rebalance_backoff_ms"),
            rebalance_max_retries=plan.number("rebalance_max_retries"),
            lab=self.lab,
        )
        filtered = self.whitelist is not None or self.blacklist is not None
        planned = {} if filtered else {plan.text("topic"): plan.number("streams")}
        stop_ms = plan.number("fetcher_stop_ms") if self.fetcher_stop_ms is None else self.fetcher_stop_ms
        spec = MemberSpec(
            actor=actor,
            host=f"host-{actor}",
            seed=plan.seed,
            rules=self.rules or plan.rules,
            real=self.real or plan.is_real(actor),
            assignor=self.assignor or plan.text("assignor") or None,
            config=config,
            streams=dict(planned if self.streams is None else self.streams),
            whitelist=self.whitelist,
            blacklist=self.blacklist,
            filter_streams=self.filter_streams,
            work_period_ms=plan.number("work_period_ms"),
            fetcher_stop_ms=stop_ms,
            operations=plan.operations,
            plant=plan.plant,
            events=events,
        )
        return stand_in(spec) if plan.world == "simulated" else spec


AS_PLANNED = MemberOptions()


MemberHandle = NodeHandle[MemberOptions, MemberState]


class GroupLab(Lab[MemberOptions, MemberState]):
    """The interface for scripts about a group. `members` are its nodes; `cluster`: the runner's own session, and what
    it has written."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.group = self.plan.text("group")
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
