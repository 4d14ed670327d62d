"""A broker that halts before an operation of its controller: what counts, and what is never answered."""

from __future__ import annotations

import pytest
from controller_stage import Stage

from controller.channels import Deliver
from controller.cluster import LiveBroker
from rebalance_lab.broker.halting import COUNTS, HALT, HALTS, OPERATION, Halt, OperationFailed, Order, halt_payload
from rebalance_lab.wire.kafka.messages.update_metadata import UpdateMetadataRequest
from rebalance_lab.wire.kafka.schema import Message
from rebalance_lab.wire.paths import BROKER_IDS, BROKER_TOPICS
from rebalance_lab.world.ports import Check, Create

BROKER = LiveBroker(2, 1, "h2", 9092)
REQUEST = UpdateMetadataRequest(controller_id=1, controller_epoch=1, live_brokers=())


class Halted:
    """Broker 1's Halt, and what it reports."""

    def __init__(self) -> None:
        self.reports: list[tuple[str, object, object]] = []
        self.halt = Halt(1, lambda event, detail: self.reports.append((event, detail.get("number"), detail["message"])))
        self.delivered: list[Message] = []
        self.answered: list[Message] = []

    async def ask(self, deliver: Deliver) -> None:
        self.answered.append(await deliver(BROKER, REQUEST))

    async def deliver(self, _broker: LiveBroker, request: Message) -> Message:
        self.delivered.append(request)
        return request


def test_operations_count_from_the_znode_on_and_end_before_the_one_that_it_names() -> None:
    async def story(stage: Stage) -> None:
        it = Halted()
        session, deliver = it.halt.session(stage.other.session), it.halt.deliver(it.deliver)
        async with stage.tasks.scope("halt") as scope:
            following = scope.spawn(it.halt.follow(stage.other), "follow")
            await session.exists("/before")
            await deliver(BROKER, REQUEST)
            assert it.reports == []
            await stage.create(HALT, halt_payload(Order(1, 4)))
            await following
            assert it.reports == [(COUNTS, None, "until operation 4")]
            await session.children(BROKER_IDS)
            await deliver(BROKER, REQUEST)
            await session.multi([Check(BROKER_TOPICS, 0), Create("/made", b"")])
            reading, creating = session.get("/made"), session.create("/never", b"")
            scope.spawn(it.ask(deliver), "deliver")
            await stage.settle()
            assert not any(each.done for each in (reading, creating))
            assert not it.answered
            assert len(it.delivered) == 2
            scope.cancel("the story has ended")
        assert it.reports[1:] == [
            (OPERATION, 1, "children /brokers/ids"),
            (OPERATION, 2, "UpdateMetadata to broker 2"),
            (OPERATION, 3, "multi: check /brokers/topics, create /made"),
            (HALTS, 4, "get /made"),
        ]
        assert await stage.there("/made")
        assert not await stage.there("/never")

    Stage().play(story)


def test_a_broker_that_the_znode_does_not_name_counts_nothing() -> None:
    async def story(stage: Stage) -> None:
        it = Halted()
        await stage.create(HALT, halt_payload(Order(2, 1)))
        await it.halt.follow(stage.other)
        await it.halt.session(stage.other.session).exists("/x")
        assert it.reports == []

    Stage().play(story)


def test_at_0_it_only_counts() -> None:
    async def story(stage: Stage) -> None:
        it = Halted()
        await stage.create(HALT, halt_payload(Order(1)))
        await it.halt.follow(stage.other)
        session = it.halt.session(stage.other.session)
        for _ in range(3):
            await session.exists("/x")
        assert [each for each, _, _ in it.reports] == [COUNTS, OPERATION, OPERATION, OPERATION]

    Stage().play(story)


def test_operations_that_are_held_back_are_carried_out_when_the_znode_is_gone() -> None:
    async def story(stage: Stage) -> None:
        it = Halted()
        session, deliver = it.halt.session(stage.other.session), it.halt.deliver(it.deliver)
        async with stage.tasks.scope("halt") as scope:
            scope.spawn(it.halt.follow(stage.other), "follow")
            await stage.create(HALT, halt_payload(Order(1, before="create /held", holds=True)))
            await stage.settle()
            await session.create("/before", b"")
            held, after = session.create("/held", b""), session.get("/held")
            scope.spawn(it.ask(deliver), "deliver")
            await stage.settle()
            assert not held.done
            assert not after.done
            assert not it.answered
            await stage.other.ask(lambda other: other.delete(HALT))
            assert (await held).value == "/held"
            assert (await after).value.data == b""
            await session.exists("/free")
            await stage.settle()
            assert it.answered == [REQUEST]
        assert [(event, number) for event, number, _ in it.reports] == [(COUNTS, None), (OPERATION, 1), (HALTS, 2)]

    Stage().play(story)


def test_what_was_held_back_may_fail() -> None:
    async def story(stage: Stage) -> None:
        it = Halted()
        session = it.halt.session(stage.other.session)
        async with stage.tasks.scope("halt") as scope:
            scope.spawn(it.halt.follow(stage.other), "follow")
            await stage.create(HALT, halt_payload(Order(1, at=1, holds=True, fails=True)))
            await stage.settle()
            held = session.create("/held", b"")
            await stage.other.ask(lambda other: other.delete(HALT))
            with pytest.raises(OperationFailed, match="the lab has this operation fail"):
                await held
            assert not await stage.there("/held")
            await session.create("/later", b"")

    Stage().play(story)
