"""A subject of its own in one file: clocks, of which one at a time holds `/clock`, an ephemeral znode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rebalance_lab.checks import Check, Finding, Outcome
from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.pause import pause
from rebalance_lab.faults.restart import restart
from rebalance_lab.history.events import Kind, Layer, new_kind
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import Interval
from rebalance_lab.history.views import actor_by_session, events_of
from rebalance_lab.kernel import Flag
from rebalance_lab.roles.spec import NodeSpec, Role
from rebalance_lab.trials.lab import AnyLab, Lab
from rebalance_lab.trials.plan import WORLD_PARAMETERS, Plan
from rebalance_lab.trials.scenario import Scenario, usual
from rebalance_lab.trials.stage import NodeOptions
from rebalance_lab.trials.subject import Subject
from rebalance_lab.world.errors import NodeExists, SessionClosed, SessionExpired
from rebalance_lab.world.ports import Environment, SessionEventKind, ZooKeeper

CLOCK = "/clock"

#: The node believes that it holds the clock.
HELD = new_kind("clock-held", Layer.BELIEF)


class ClockSpec(NodeSpec, frozen=True, kw_only=True, tag=__name__):
    connect: str
    session_timeout_ms: int


async def run(environment: Environment, spec: ClockSpec, closing: Flag) -> None:
    while not closing.raised:
        session = environment.zookeeper.open(spec.connect, spec.session_timeout_ms)
        async with environment.tasks.scope("hold") as scope:
            scope.spawn(hold(environment, session), "hold")
            ended = scope.spawn(expired(session), "expired")
            await environment.tasks.first(closing.wait(), ended)
            scope.cancel("the session has ended" if ended.done else "asked to leave")
        await session.close()


async def expired(session: ZooKeeper) -> None:
    while (await session.events.get()).kind is not SessionEventKind.EXPIRED:
        continue


async def hold(environment: Environment, session: ZooKeeper) -> None:
    """Take the clock, or wait until it is gone and try again; give up with the session."""
    with suppress(SessionExpired, SessionClosed):
        while True:
            try:
                zxid = (await session.create(CLOCK, environment.actor.encode(), ephemeral=True)).zxid
                environment.recorder.emit(Layer.BELIEF, HELD, member=environment.actor, zxid=zxid)
                return
            except NodeExists:
                there = await session.exists(CLOCK, watch=True)
                if there.watch is not None:
                    await there.watch


ROLE = Role("clock", ClockSpec, run)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockOptions(NodeOptions):
    def spec(self, plan: Plan, actor: str, *, connect: str, events: str) -> ClockSpec:
        timeout_ms, seed = plan.number("session_timeout_ms"), plan.seed
        return ClockSpec(
            actor=actor, host=actor, seed=seed, events=events, connect=connect, session_timeout_ms=timeout_ms
        )


def held(history: History) -> Iterator[Interval]:
    """Whose `/clock` is, by the registry."""
    begun = None
    for event in events_of(history, Kind.CREATED, Kind.DELETED):
        if event.of("path") == CLOCK and event.kind is Kind.CREATED:
            begun = event
        elif event.of("path") == CLOCK and begun is not None:
            actor = actor_by_session(history)[begun.session]
            yield Interval(Layer.REGISTRY, actor, "", "clock", 0, begun.at_us, event.at_us, begun.id, event.id)


def judge(history: History) -> Finding:
    created = {event.zxid for event in events_of(history, Kind.CREATED) if event.of("path") == CLOCK}
    for event in events_of(history, HELD):
        if event.zxid not in created:
            return Finding(Outcome.VIOLATED, f"{event.actor} holds a clock that was never created", (event.id,))
    return Finding(Outcome.CLEAN, "every clock that was held was created", measures={"count": len(created)})


CHECK = Check("clock_is_there", (Layer.BELIEF, Layer.REGISTRY), "A node held no clock.", (), judge, ("clock",))
WORDS = Path(__file__).with_suffix(".toml")
SUBJECT = Subject(name="clock", rules=("plain",), lab=Lab, checks=(CHECK,), holdings=held, words=WORDS)


async def script(lab: AnyLab) -> None:
    await lab.connected()
    first = lab.start("c1", ClockOptions())
    await lab.until(lambda: first.started, "the first clock")
    await lab.rest("one runs")
    second = lab.start("c2", ClockOptions())
    await lab.until(lambda: second.started, "the second clock")
    await lab.rest("two run")
    await pause(lab, first, 2 * lab.plan.number("session_timeout_ms"))
    await lab.rest("after the pause")
    await kill(lab, second)
    await restart(lab, second)
    await lab.rest("after the restart")
    await lab.close()


SCENARIO = Scenario("clocks", SUBJECT, "two clocks", tuple(WORLD_PARAMETERS.values()), script, lambda _: usual("clock"))
