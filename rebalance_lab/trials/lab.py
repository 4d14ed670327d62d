"""The lab in which a scenario plays: it starts nodes, injects faults, waits for rest, and closes.

A scenario's script is a coroutine on the runner's kernel. It is the same in every world. Worlds differ in their
`Stage`: simulated processes on the same kernel, or OS processes and servers. Subjects differ in their lab: each adds
what its scripts need (`subjects`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from rebalance_lab.history.events import Event, EventId, Kind, Layer
from rebalance_lab.history.fault_kinds import FaultKind
from rebalance_lab.history.planted import PlantedBug
from rebalance_lab.history.rest import NodeState, StateTracker
from rebalance_lab.kernel import Flag, Kernel, TimedOut
from rebalance_lab.trials.stage import GaveUp, Links, NodeOptions, ProcessHandle, Servers, Stage, TrialError
from rebalance_lab.world.ports import SessionEventKind

__all__ = [
    "AnyLab",
    "AnyNode",
    "FaultBug",
    "Injection",
    "Lab",
    "NodeHandle",
    "ProcessHandle",
    "Stage",
    "TrialError",
]

#: A node's start includes its process, its session and its first work with all retries.
START_LIMIT_MS = 60_000

#: Rest needs at least this much quiet, however short the back-offs: a live runner reads what
#: nodes wrote every 20 ms.
QUIET_LEAST_MS = 200

O = TypeVar("O", bound=NodeOptions)  # noqa: E741 (a type variable)
S = TypeVar("S", bound=NodeState)


class NodeHandle(Generic[O, S]):
    """One node of the trial, as the runner sees it."""

    def __init__(self, actor: str, options: O, process: ProcessHandle, stage: Stage) -> None:
        self.actor = actor
        self.options = options
        self.process = process
        self._stage = stage

    @property
    def started(self) -> bool:
        """Whether the history shows that the node has started."""
        return self.actor in self._stage.tracker.nodes

    @property
    def state(self) -> S:
        """What the history shows of the node. Raises TrialError before it has started."""
        state: S | None = self._stage.tracker.nodes.get(self.actor)
        if state is None:
            raise TrialError(f"{self.actor} has not started")
        return state


#: A node of any subject.
AnyNode = NodeHandle[Any, Any]


class Lab(Generic[O, S]):
    """The interface for the script of a scenario, whatever its subject."""

    def __init__(self, stage: Stage) -> None:
        self.plan = stage.plan
        self.tasks: Kernel = stage.kernel
        self.recorder = stage.recorder
        self.nodes: list[NodeHandle[O, S]] = []
        self._stage = stage
        self._phase = ""

    @property
    def living(self) -> list[NodeHandle[O, S]]:
        """The nodes that have neither left nor been killed, in the order of their starts."""
        return [node for node in self.nodes if not (node.started and node.state.gone)]

    @property
    def servers(self) -> Servers:
        """The ZooKeeper servers: the faults' handle."""
        return self._stage.servers

    @property
    def links(self) -> Links:
        """The connections between nodes: the faults' handle."""
        return self._stage.links

    # -- what subjects say of theirs ----------------------------------------------------------

    #: The group that the runner's events name.
    group: str | None = None

    @property
    def quiet_ms(self) -> int:
        """How long nothing may have changed at a rest."""
        return QUIET_LEAST_MS

    async def observe(self) -> None:
        """Look from outside, with the runner's own session, and record what was read."""

    async def left(self, node: NodeHandle[O, S]) -> None:
        """Wait until a node that was asked to leave has left."""
        await self.until(lambda: self.closed(node.state.session) is not None, f"the clean leave of {node.actor}")

    # -- the script's vocabulary ------------------------------------------------------------

    async def connected(self) -> None:
        """Wait until the runner's own session is open."""
        async with self._bounded("the runner's session", START_LIMIT_MS):
            while (await self._stage.zookeeper.events.get()).kind is not SessionEventKind.CONNECTED:
                pass

    def start(self, actor: str, options: O) -> NodeHandle[O, S]:
        """Start a node under a name of its own. It has not done anything yet when this returns."""
        node: NodeHandle[O, S] = NodeHandle(actor, options, self._stage.start(actor, options), self._stage)
        self.nodes.append(node)
        return node

    async def start_again(self, node: NodeHandle[O, S]) -> str:
        """Start a node again, under its name, that was killed or has left. Returns the proof once it lives."""
        former = node.state
        proof = await node.process.start_again()
        await self.until(lambda: node.state is not former, f"the second life of {node.actor}")
        return proof

    async def until(self, condition: Callable[[], bool], what: str, limit_ms: int = START_LIMIT_MS) -> None:
        """Wait for something that the history shows of nodes. Raises GaveUp after `limit_ms`."""
        async with self._bounded(what, limit_ms):
            while not condition():
                await self._change()

    async def rest(self, phase: str) -> bool:
        """Wait until all nodes are at rest, then look at them from outside. Returns False and records REST_MISSED if
        they were not at rest within `rest_timeout_ms`."""
        quiet_us = 1000 * self.quiet_ms
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

    def phase(self, name: str, **detail: object) -> EventId:
        """Record what follows. `change` and `members`: a membership change that nothing else overlaps, and the
        group's size before it. `published`: what each living member owns at the next rest according to the articles."""
        self._phase = name
        return self._note(Kind.PHASE, name=name, **detail)

    async def sleep_ms(self, duration_ms: int) -> None:
        """Let time pass, as part of the experiment."""
        await self.tasks.sleep(duration_ms * 1000)

    async def lasts(self, duration: int | Flag) -> None:
        """Wait for the end of a fault: so many ms, or until the flag is raised."""
        await (duration.wait() if isinstance(duration, Flag) else self.sleep_ms(duration))

    async def leave(self, node: NodeHandle[O, S]) -> Event:
        """Ask a node to leave cleanly, and wait until its session is closed. Returns the registry's event of that."""
        node.process.ask_to_leave()
        await self.left(node)
        closed = self.closed(node.state.session)
        if closed is None:
            raise TrialError(f"{node.actor} left before it had a session")
        return closed

    def closed(self, session: str | None) -> Event | None:
        """The registry's event of a session's end, if it has ended."""
        return None if session is None else self._stage.tracker.closed_sessions.get(session)

    async def recover(self) -> None:
        """End the trial once all nodes are at rest after the fault."""
        self.phase("recovery")
        await self.rest("recovered")
        await self.close()

    async def close(self) -> None:
        """End the trial: all living nodes leave, the runner looks at what is left, and leaves.

        All are asked at once. A member that is asked while it rebalances because another left waits for its back-offs
        first (defect F10).
        """
        self.phase("closing")
        living = [node for node in self.living if node.started]
        for node in living:
            node.process.ask_to_leave()
        for node in living:
            await self.left(node)
        await self.observe()
        self._note(Kind.TRIAL_ENDED)
        await self._stage.zookeeper.close()

    # -- inside -----------------------------------------------------------------------------

    def begin(self) -> None:
        """Record the trial's begin. The script follows."""
        self._note(Kind.TRIAL_BEGAN, scenario=self.plan.scenario)

    def give_up(self, why: GaveUp) -> None:
        """Record that the script was given up; nothing follows. `at_rest`: whether no node was busy then."""
        at_rest = self._stage.tracker.busy() is None
        self._note(Kind.REST_MISSED, phase=self._phase, why=str(why), gave_up=True, at_rest=at_rest)

    async def _change(self) -> None:
        await self._stage.changed.wait()
        self._stage.changed.clear()

    def _bounded(self, what: str, limit_ms: int) -> _Bound:
        return _Bound(self.tasks, what, limit_ms, self._stage.tracker)

    def _note(self, kind: Kind, **detail: object) -> EventId:
        return self.recorder.emit(Layer.OP, kind, group=self.group, detail=detail or None)


#: The lab of any subject.
AnyLab = Lab[Any, Any]


class _Bound:
    """A deadline that ends the trial when it passes (GaveUp), with what the tracker knows."""

    def __init__(self, tasks: Kernel, what: str, limit_ms: int, tracker: StateTracker[Any]) -> None:
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


class FaultBug(PlantedBug):
    """The planted bugs of a fault: a subclass, in the file of the fault."""


class Injection:
    """One fault under way. `target`: an actor (m1, z1, or the group's name for a storm).

    Creating it records FAULT_BEGAN. Detail: fault, target, session of the victim, planned_ms (0 for a fault that lasts
    until a flag is raised), must_outlast_session, and what the fault adds; must_survive is the session that must be
    connected again after it, or the trial is unknown (`checks.faults`).
    """

    def __init__(
        self,
        lab: AnyLab,
        fault: FaultKind,
        target: str | AnyNode,
        *,
        planned: int | Flag = 0,
        must_outlast_session: bool = False,
        **detail: object,
    ) -> None:
        self._recorder = lab.recorder
        victim = target.state if isinstance(target, NodeHandle) and target.started else None
        actor = target.actor if isinstance(target, NodeHandle) else target
        self._fault: dict[str, object] = {"fault": fault.name, "target": actor}
        self.session = victim.session if victim is not None else None
        _, self._began = self._recorder.emit(
            Layer.FAULT,
            Kind.FAULT_BEGAN,
            member=victim.member if victim is not None else None,
            detail={
                **self._fault,
                "session": self.session,
                "planned_ms": 0 if isinstance(planned, Flag) else planned,
                "must_outlast_session": must_outlast_session,
                **detail,
            },
        )

    def bit(self, proof: str, **more: object) -> None:
        """The fault has taken effect, as `proof` shows. `more`: further details of the event."""
        detail = {**self._fault, "of": self._began, "proof": proof, **more}
        self._recorder.emit(Layer.FAULT, Kind.FAULT_BIT, detail=detail)

    def ended(self) -> None:
        """The fault is over: healed, or done."""
        self._recorder.emit(Layer.FAULT, Kind.FAULT_ENDED, detail={**self._fault, "of": self._began})
