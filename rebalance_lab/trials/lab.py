"""The lab a scenario plays in: start members, wait for rest, look from outside, close.

A scenario's script is a coroutine on the runner's kernel. It is the same in every world; what
differs is the `Stage`: simulated processes on the same kernel, or OS processes and a server.
"""

from __future__ import annotations

from typing import Protocol

from rebalance_lab.history.events import Event, EventId, Kind, Layer
from rebalance_lab.kernel import Flag, Kernel, TimedOut
from rebalance_lab.trials.fixture import ensure_path, write_fixture
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.rest import MemberState, RestTracker
from rebalance_lab.world.errors import NoNode
from rebalance_lab.world.ports import RecorderPort, SessionEventKind, ZooKeeper

#: A member's start includes its process, its session and its first rebalance with all retries.
START_LIMIT_MS = 60_000

#: Rest needs at least this much quiet, however short the back-offs: a live runner reads what
#: members wrote every 20 ms.
QUIET_LEAST_MS = 200


class TrialError(Exception):
    """The trial could not be carried out: nothing can be said of its claims."""


class ProcessHandle(Protocol):
    """The faults' handle on a member's process. Each method returns the proof that it worked,
    as text for the history, or raises TrialError."""

    async def pause(self) -> str: ...
    async def resume(self) -> str: ...
    async def kill(self) -> str: ...

    def ask_to_leave(self) -> None:
        """Ask for a clean shutdown, as an operator's SIGTERM does; the history tells its end."""
        ...


class Stage(Protocol):
    """What a world supplies. `changed` is raised whenever an event that bears on rest came."""

    @property
    def kernel(self) -> Kernel: ...
    @property
    def recorder(self) -> RecorderPort: ...
    @property
    def tracker(self) -> RestTracker: ...
    @property
    def changed(self) -> Flag: ...
    @property
    def zookeeper(self) -> ZooKeeper: ...

    def start_member(self, actor: str) -> ProcessHandle: ...


class MemberHandle:
    """One member of the trial, seen by the runner."""

    def __init__(self, actor: str, process: ProcessHandle, stage: Stage) -> None:
        self.actor = actor
        self.process = process
        self._stage = stage

    @property
    def state(self) -> MemberState:
        """What the history says of it. Raises TrialError before it has started."""
        state = self._stage.tracker.members.get(self.actor)
        if state is None:
            raise TrialError(f"{self.actor} has not started")
        return state


class Lab:
    """What a scenario's script works with."""

    def __init__(self, plan: Plan, stage: Stage) -> None:
        self.plan = plan
        self.tasks = stage.kernel
        self.recorder = stage.recorder
        self.members: list[MemberHandle] = []
        self._stage = stage

    # -- the script's vocabulary ------------------------------------------------------------

    async def prepare(self) -> None:
        """Write the znodes members need: brokers, and the topic with its partitions."""
        session = self._stage.zookeeper
        async with self._bounded("the runner's session", START_LIMIT_MS):
            while (await session.events.get()).kind is not SessionEventKind.CONNECTED:
                pass
        topics = {self.plan.text("topic"): self.plan.number("partitions")}
        await write_fixture(session, brokers=self.plan.number("brokers"), topics=topics)
        await ensure_path(session, f"/consumers/{self.plan.text('group')}/ids")

    async def start_member(self) -> MemberHandle:
        """Start the next member (m1, m2, …) and wait until its first rebalance has ended."""
        handle = self._launch()
        await self._first_rebalance(handle)
        return handle

    async def start_members(self, count: int) -> list[MemberHandle]:
        """Start `count` members: one after another, or all at once (parameter `together`)."""
        if not self.plan.parameters["together"]:
            return [await self.start_member() for _ in range(count)]
        handles = [self._launch() for _ in range(count)]
        for handle in handles:
            await self._first_rebalance(handle)
        return handles

    def _launch(self) -> MemberHandle:
        actor = f"m{len(self.members) + 1}"
        handle = MemberHandle(actor, self._stage.start_member(actor), self._stage)
        self.members.append(handle)
        return handle

    async def _first_rebalance(self, handle: MemberHandle) -> None:
        members = self._stage.tracker.members
        async with self._bounded(f"the first rebalance of {handle.actor}", START_LIMIT_MS):
            while handle.actor not in members or members[handle.actor].rebalances == 0:
                await self._change()

    async def rest(self, phase: str) -> bool:
        """Wait until the group rests, then look at it from outside. False, and REST_MISSED in
        the history, when it did not within `rest_timeout_ms`."""
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
        """Read the group's registration and owners with the runner's own session."""
        group, topic = self.plan.text("group"), self.plan.text("topic")
        for path in (f"/consumers/{group}/ids", f"/consumers/{group}/owners/{topic}"):
            try:
                reply = await self._stage.zookeeper.children(path)
                zxid, names = reply.zxid, reply.value.names
            except NoNode as missing:
                zxid, names = missing.zxid, ()
            detail: dict[str, object] = {"path": path, "children": list(names)}
            self.recorder.emit(Layer.OP, Kind.OBSERVED, group=group, zxid=zxid, detail=detail)

    def phase(self, name: str) -> EventId:
        """Say in the history what follows."""
        return self._note(Kind.PHASE, name=name)

    async def sleep_ms(self, duration_ms: int) -> None:
        """Let time pass, because the experiment says so."""
        await self.tasks.sleep(duration_ms * 1000)

    async def leave(self, member: MemberHandle) -> Event:
        """A clean leave: asked for, and waited for until the session is closed. Returns the
        registry's event of that."""
        member.process.ask_to_leave()
        await self._left(member)
        session = member.state.session
        if session is None:
            raise TrialError(f"{member.actor} left before it ever had a session")
        return self._stage.tracker.closed_sessions[session]

    async def _left(self, member: MemberHandle) -> None:
        async with self._bounded(f"the clean leave of {member.actor}", START_LIMIT_MS):
            while not member.state.gone or member.state.busy(self._stage.tracker.closed_sessions) is not None:
                await self._change()

    async def close(self) -> None:
        """End the trial: all who live leave, then the runner does.

        All are asked at once: a member that is asked while it rebalances for another's leave
        waits out its back-offs first (facts 8.6, F10).
        """
        self.phase("closing")
        living = [member for member in self.members if not member.state.gone]
        for member in living:
            member.process.ask_to_leave()
        for member in living:
            await self._left(member)
        self._note(Kind.TRIAL_ENDED)
        await self._stage.zookeeper.close()

    # -- inside -----------------------------------------------------------------------------

    def begin(self) -> None:
        """Mark the trial's beginning; the script follows."""
        self._note(Kind.TRIAL_BEGAN, scenario=self.plan.scenario)

    async def _change(self) -> None:
        await self._stage.changed.wait()
        self._stage.changed.clear()

    def _bounded(self, what: str, limit_ms: int) -> _Bound:
        return _Bound(self.tasks, what, limit_ms, self._stage.tracker)

    def _note(self, kind: Kind, **detail: object) -> EventId:
        return self.recorder.emit(Layer.OP, kind, group=self.plan.text("group"), detail=detail or None)


class _Bound:
    """A deadline whose passing ends the trial, with what the tracker knows."""

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
            raise TrialError(f"{self._what} did not come: {late}; {self._tracker.busy() or 'all rest'}") from late
