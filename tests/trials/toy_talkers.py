"""A subject of a node that answers and one that asks it over and over, on one connection after another."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.link import cut_link, slow_link
from rebalance_lab.faults.restart import restart
from rebalance_lab.history.events import Event, Layer, new_kind
from rebalance_lab.history.rest import NodeState, NodeTracker
from rebalance_lab.kernel import Flag
from rebalance_lab.roles.spec import NodeSpec, Role
from rebalance_lab.trials.lab import Lab
from rebalance_lab.trials.plan import WORLD_PARAMETERS, Plan
from rebalance_lab.trials.scenario import Scenario, usual
from rebalance_lab.trials.stage import NodeOptions
from rebalance_lab.trials.subject import Subject
from rebalance_lab.world.errors import NoNode
from rebalance_lab.world.network import Address, NetworkError, ServerConnection, parse_address
from rebalance_lab.world.ports import Environment, ZooKeeper

#: Where the one that answers is found: an ephemeral znode with its address.
PLACE = "/talker"

PAUSE_US = 20_000
REPLY_LIMIT_US = 3_000_000

#: A reply came; detail: number, of the connections so far, and after_us since it was asked for.
HEARD = new_kind("talker-heard", Layer.EFFECT)


class NumberCodec:
    malformed: tuple[type[Exception], ...] = (ValueError,)

    def encode_request(self, correlation_id: int, request: int) -> bytes:
        return b"%d %d" % (correlation_id, request)

    def decode_request(self, frame: bytes) -> tuple[int, int]:
        correlation_id, number = frame.split()
        return int(correlation_id), int(number)

    def encode_reply(self, correlation_id: int, request: int, reply: int) -> bytes:
        return self.encode_request(correlation_id, reply)

    def decode_reply(self, request: int, frame: bytes) -> tuple[int, int]:
        return self.decode_request(frame)


class TalkerSpec(NodeSpec, frozen=True, kw_only=True, tag=__name__):
    connect: str
    session_timeout_ms: int
    answers: bool


async def run(environment: Environment, spec: TalkerSpec, closing: Flag) -> None:
    session = environment.zookeeper.open(spec.connect, spec.session_timeout_ms)
    async with environment.tasks.scope("talk") as scope:
        talk = answer_all(environment, session) if spec.answers else ask_on(environment, session)
        scope.spawn(talk, "talk")
        await closing.wait()
        scope.cancel("asked to leave")
    await session.close()


async def answer_all(environment: Environment, session: ZooKeeper) -> None:
    listener = await environment.network.listen(NumberCodec())
    with suppress(NoNode):
        await session.delete(PLACE)  # of an earlier life
    await session.create(PLACE, str(listener.address).encode(), ephemeral=True)
    async with environment.tasks.scope("connections") as scope:
        while True:
            connection = await listener.accept()
            scope.spawn(answer(connection), connection.peer)


async def answer(connection: ServerConnection[int, int]) -> None:
    with suppress(NetworkError):
        while True:
            await connection.reply(-await connection.receive())


async def ask_on(environment: Environment, session: ZooKeeper) -> None:
    connections = 0
    while True:
        with suppress(NoNode, NetworkError):
            place = await session.get(PLACE)
            connections += 1
            await ask(environment, parse_address(place.value.data.decode()), connections)
        await environment.tasks.sleep(PAUSE_US)


async def ask(environment: Environment, address: Address, number: int) -> None:
    connection = await environment.network.connect(address, NumberCodec(), timeout_us=REPLY_LIMIT_US)
    while True:
        began_us = environment.tasks.now_us()
        assert await connection.request(number, timeout_us=REPLY_LIMIT_US) == -number
        detail: dict[str, object] = {"number": number, "after_us": environment.tasks.now_us() - began_us}
        environment.recorder.emit(Layer.EFFECT, HEARD, member=environment.actor, detail=detail)
        await environment.tasks.sleep(PAUSE_US)


ROLE = Role("talker", TalkerSpec, run)


@dataclass(frozen=True, slots=True, kw_only=True)
class TalkerOptions(NodeOptions):
    answers: bool

    def spec(self, plan: Plan, actor: str, *, connect: str, events: str) -> TalkerSpec:
        return TalkerSpec(
            actor=actor,
            host=actor,
            seed=plan.seed,
            events=events,
            connect=connect,
            session_timeout_ms=plan.number("session_timeout_ms"),
            answers=self.answers,
        )


class TalkersTracker(NodeTracker):
    """It counts replies."""

    heard = 0

    def feed(self, event: Event) -> bool:
        if event.kind is HEARD:
            self.heard += 1
            return True
        return super().feed(event)


class TalkersLab(Lab[TalkerOptions, NodeState]):
    async def heard(self) -> None:
        """Wait for replies that were asked for from now on: one may be on its way."""
        tracker = self._stage.tracker
        assert isinstance(tracker, TalkersTracker)
        enough = tracker.heard + 3
        await self.until(lambda: tracker.heard >= enough, "replies")


SUBJECT = Subject(name="talkers", rules=("plain",), lab=TalkersLab, tracker=TalkersTracker)


async def script(lab: TalkersLab) -> None:
    await lab.connected()
    server = lab.start("s", TalkerOptions(answers=True))
    client = lab.start("c", TalkerOptions(answers=False))
    await lab.heard()
    await cut_link(lab, client, server, 700)
    await lab.heard()
    await cut_link(lab, server, client, 700, back=False)
    await lab.heard()
    await slow_link(lab, client, server, 700, there_ms=100, back_ms=0)
    await lab.heard()
    await kill(lab, server)
    await restart(lab, server)
    await lab.heard()
    await cut_link(lab, client, server, 700, there=False)
    await lab.heard()
    await lab.close()


WORLD = tuple(WORLD_PARAMETERS.values())
SCENARIO = Scenario("talkers", SUBJECT, "two talkers", WORLD, script, lambda _: usual("talkers"))
