"""The lab in which a scenario plays: it starts members, waits for rest, looks from outside, and closes.

A scenario's script is a coroutine on the runner's kernel. It is the same in every world. Worlds differ
in their `Stage`: simulated processes on the same kernel, or OS processes and servers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rebalance_lab.history.events import Event, EventId, Kind, Layer
from rebalance_lab.history.rest import MemberState, RestTracker
from rebalance_lab.kernel import Kernel, TimedOut
from rebalance_lab.trials.cluster import Cluster
from rebalance_lab.trials.members import AS_PLANNED, MemberOptions
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.stage import GaveUp, ProcessHandle, Servers, Stage, TrialError
from rebalance_lab.world.ports import SessionEventKind

__all__ = ["Lab", "MemberHandle", "ProcessHandle", "Stage", "TrialError"]

#: A member's start includes its process, its session and its first rebalance with all retries.
START_LIMIT_MS = 60_000

#: Rest needs at least this much quiet, however short the back-offs: a live runner reads what
#: members wrote every 20 ms.
QUIET_LEAST_MS = 200


class MemberHandle:
    """One member of the trial, as the runner sees it."""

    def __init__(self, actor: str, options: MemberOptions, process: ProcessHandle, stage: Stage) -> None:
        self.actor = actor
        self.options = options
        self.process = process
        self._stage = stage

    @property
    def started(self) -> bool:
        """Whether the history shows that the member has started."""
        return self.actor in self._stage.tracker.members

    @property
    def state(self) -> MemberState:
        """What the history shows of the member. Raises TrialError before it has started."""
        state = self._stage.tracker.members.get(self.actor)
        if state is None:
            raise TrialError(f"{self.actor} has not started")
        return state


class Lab:
    """The interface for the script of a scenario."""

    def __init__(self, plan: Plan, stage: Stage) -> None:
        self.plan = plan
        self.tasks: Kernel = stage.kernel
        self.recorder = stage.recorder
        self.members: list[MemberHandle] = []
        self.cluster = Cluster(stage.zookeeper, stage.recorder, servers=len(stage.servers.names))
        self._stage = stage
        self._phase = ""

    @property
    def living(self) -> list[MemberHandle]:
        """The members that have neither left nor been killed, in the order of their starts."""
        return [member for member in self.members if not (member.started and member.state.gone)]

    @property
    def servers(self) -> Servers:
        """The ZooKeeper servers: the faults' handle."""
        return self._stage.servers

    # -- the script's vocabulary ------------------------------------------------------------

    async def prepare(self, topics: Mapping[str, int] | None = None) -> None:
        """Write the znodes that members need: brokers, and topics with their partitions (by default the plan's
        topic)."""
        session = self._stage.zookeeper
        async with self._bounded("the runner's session", START_LIMIT_MS):
            while (await session.events.get()).kind is not SessionEventKind.CONNECTED:
                pass
        planned = {self.plan.text("topic"): self.plan.number("partitions")}
        brokers = self.plan.number("brokers")
        real = await self._stage.start_brokers(brokers)
        await self.cluster.prepare(brokers, planned if topics is None else topics, real=real)
        await self.cluster.add_group(self.plan.text("group"))

    async def start_member(self, options: MemberOptions = AS_PLANNED, *, wait: bool = True) -> MemberHandle:
        """Start the next member (m1, m2, …). Wait until its first rebalance has ended, successful or not, or its
        settings were refused. With `wait` false only start it."""
        if options.group:
            await self.cluster.add_group(options.group)
        actor = f"m{len(self.members) + 1}"
        handle = MemberHandle(actor, options, self._stage.start_member(actor, options), self._stage)
        self.members.append(handle)
        if wait:
            await self.first_rebalance(handle)
        return handle

    async def start_members(self, count: int, options: MemberOptions = AS_PLANNED) -> list[MemberHandle]:
        """Start `count` members, one after another or all at once (parameter `together`)."""
        together = bool(self.plan.parameters["together"])
        handles = [await self.start_member(options, wait=not together) for _ in range(count)]
        for handle in handles if together else ():
            await self.first_rebalance(handle)
        return handles

    async def first_rebalance(self, handle: MemberHandle) -> None:
        """Wait until a member's first rebalance has ended, successful or not."""
        await self.until(
            lambda: handle.started and (handle.state.rebalances > 0 or handle.state.refused),
            f"the first rebalance of {handle.actor}",
        )

    async def until(self, condition: Callable[[], bool], what: str, limit_ms: int = START_LIMIT_MS) -> None:
        """Wait for something that the history shows of members. Raises GaveUp after `limit_ms`."""
        async with self._bounded(what, limit_ms):
            while not condition():
                await self._change()

    async def claimed(self, partition: int, limit_ms: int) -> None:
        """Wait until a member has claimed a partition of the plan's topic. Raises GaveUp after `limit_ms`."""
        group, topic = self.plan.text("group"), self.plan.text("topic")
        async with self._bounded(f"a claim of {topic}/{partition}", limit_ms):
            await self.cluster.claimed(group, topic, partition)

    async def rest(self, phase: str) -> bool:
        """Wait until the group is at rest, then look at it from outside. Returns False and records REST_MISSED if it
        was not at rest within `rest_timeout_ms`."""
        quiet_us = 1000 * max(2 * self.plan.number("rebalance_backoff_ms"), QUIET_LEAST_MS)
        tracker = self._stage.tracker
        try:
            async with self.tasks.timeout(self.plan.number("rest_timeout_ms") * 1000, f"rest in phase {phase}"):
                while True:
                    remaining_us = tracker.last_change_us + quiet_us - self.tasks.now_us()
                    if tracker.busy() is not None:
                        await self._change()
                    elif remaining_us > 0:
                        await self.tasks.first(self._stage.changed.wait(), self.tasks.sleep(remaining_us))
                        self._stage.changed.clear()
                    else:
                        break
        except TimedOut:
            why = tracker.busy() or "owners kept changing"
            self._note(Kind.REST_MISSED, phase=phase, why=why)
            return False
        await self.observe()
        self._note(Kind.REST_REACHED, phase=phase)
        return True

    async def observe(self) -> None:
        """Read registrations and owners of every group with the runner's own session."""
        await self.cluster.observe()

    def phase(self, name: str, **detail: object) -> EventId:
        """Record what follows. `change` and `members`: a membership change that nothing else overlaps, and the
        group's size before it. `published`: what each living member owns at the next rest according to the articles."""
        self._phase = name
        return self._note(Kind.PHASE, name=name, **detail)

    async def sleep_ms(self, duration_ms: int) -> None:
        """Let time pass, as part of the experiment."""
        await self.tasks.sleep(duration_ms * 1000)

    async def leave(self, member: MemberHandle) -> Event:
        """Ask a member to leave cleanly, and wait until its session is closed. Returns the registry's event of that."""
        member.process.ask_to_leave()
        await self._left(member)
        session = member.state.session
        if session is None:
            raise TrialError(f"{member.actor} left before it had a session")
        return self._stage.tracker.closed_sessions[session]

    def closed(self, session: str | None) -> Event | None:
        """The registry's event of a session's end, if it has ended."""
        return None if session is None else self._stage.tracker.closed_sessions.get(session)

    async def _left(self, member: MemberHandle) -> None:
        await self.until(
            lambda: member.state.gone and member.state.busy(self._stage.tracker.closed_sessions) is None,
            f"the clean leave of {member.actor}",
        )

    async def close(self) -> None:
        """End the trial: all living members leave, the runner looks at what is left, and leaves.

        All are asked at once. A member that is asked while it rebalances because another left waits for its back-offs
        first (defect F10).
        """
        self.phase("closing")
        living = [member for member in self.living if member.started]
        for member in living:
            member.process.ask_to_leave()
        for member in living:
            await self._left(member)
        await self.observe()
        self._note(Kind.TRIAL_ENDED)
        await self._stage.zookeeper.close()

    # -- inside -----------------------------------------------------------------------------

    def begin(self) -> None:
        """Record the trial's begin. The script follows."""
        self._note(Kind.TRIAL_BEGAN, scenario=self.plan.scenario)

    def give_up(self, why: GaveUp) -> None:
        """Record that the script was given up; nothing follows. `at_rest`: whether no member was busy then."""
        at_rest = self._stage.tracker.busy() is None
        self._note(Kind.REST_MISSED, phase=self._phase, why=str(why), gave_up=True, at_rest=at_rest)

    async def _change(self) -> None:
        await self._stage.changed.wait()
        self._stage.changed.clear()

    def _bounded(self, what: str, limit_ms: int) -> _Bound:
        return _Bound(self.tasks, what, limit_ms, self._stage.tracker)

    def _note(self, kind: Kind, **detail: object) -> EventId:
        return self.recorder.emit(Layer.OP, kind, group=self.plan.text("group"), detail=detail or None)


class _Bound:
    """A deadline that ends the trial when it passes (GaveUp), with what the tracker knows."""

    def __init__(self, tasks: Kernel, what: str, limit_ms: int, tracker: RestTracker) -> None:
        self._what = what
        self._tracker = tracker
        self._deadline = tasks.timeout(limit_ms * 1000, what)

    async def __aenter__(self) -> None:
        await self._deadline.__aenter__()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            await self._deadline.__aexit__(kind, error, None)
        except TimedOut as late:
            raise GaveUp(f"{self._what} did not come: {late}; {self._tracker.busy() or 'all rest'}") from late
