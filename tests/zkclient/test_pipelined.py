"""Many requests at once on a simulated ZooKeeper: their order, their number, lost connections, fences."""

from __future__ import annotations

import pytest
from client_stage import Stage

from rebalance_lab.history.events import Kind
from rebalance_lab.kernel import Future
from rebalance_lab.world.errors import BadVersion, NodeExists, NoNode, SessionClosed, SessionExpired
from rebalance_lab.world.ports import (
    Check,
    Create,
    Node,
    Reply,
    SessionState,
    Set,
    Stat,
    WriteOperation,
    ZooKeeper,
)
from rebalance_lab.zkclient.pipelined import PipelinedClient, RenewedClient, Request


def client(stage: Stage, *, in_flight: int = 10) -> PipelinedClient:
    return PipelinedClient(stage.environment.zookeeper.open("simulated:2181", 2000), in_flight=in_flight)


def read(path: str) -> Request[Node]:
    return lambda session: session.get(path)


def test_answers_come_in_the_order_of_the_requests_each_with_its_own_error() -> None:
    async def story(stage: Stage) -> None:
        await stage.other.create("/a", b"1")
        await stage.other.create("/b", b"2")
        answers = await client(stage).ask_all([read("/b"), read("/x"), read("/a")])
        assert [each.reply.value.data for each in (answers[0], answers[2])] == [b"2", b"1"]
        with pytest.raises(NoNode):
            _ = answers[1].reply

    Stage().play(story)


@pytest.mark.parametrize("in_flight", [1, 3, 10])
def test_no_more_requests_are_under_way_than_allowed(in_flight: int) -> None:
    async def story(stage: Stage) -> None:
        await stage.other.create("/a", b"1")
        most = 0

        def counted(session: ZooKeeper):
            nonlocal most
            open_now = sum(e.kind is Kind.INVOKED for e in mine(stage)) - sum(e.kind is Kind.OK for e in mine(stage))
            most = max(most, open_now + 1)
            return session.get("/a")

        answers = await client(stage, in_flight=in_flight).ask_all([counted] * 25)
        assert len(answers) == 25
        assert most == in_flight

    Stage().play(story)


def mine(stage: Stage):
    return [event for event in stage.sink.events if event.actor == "m1" and event.of("path") == "/a"]


def test_what_a_lost_connection_left_undecided_is_asked_again() -> None:
    async def story(stage: Stage) -> None:
        await stage.other.create("/a", b"1")
        it = client(stage)
        await it.ask(read("/a"))
        stage.server.break_connection(it.session.session_id)
        answers = await it.ask_all([read("/a")] * 15)
        assert [each.reply.value.data for each in answers] == [b"1"] * 15

    Stage().play(story)


def test_a_write_that_is_asked_again_finds_what_it_has_done() -> None:
    async def story(stage: Stage) -> None:
        it = client(stage)
        await it.ask(lambda session: session.exists("/"))
        stage.server.lose_next_reply(it.session.session_id)
        assert not await it.create_if_missing("/a", b"1")
        assert (await it.ask(read("/a"))).value.data == b"1"

    Stage().play(story)


def test_an_expired_session_fails_every_request() -> None:
    async def story(stage: Stage) -> None:
        it = client(stage)
        await it.ask(lambda session: session.exists("/"))
        stage.server.expire(it.session.session_id)
        with pytest.raises(SessionExpired):
            await it.ask_all([read("/a")] * 3)

    Stage().play(story)


def test_a_renewed_client_goes_on_in_its_next_session() -> None:
    """What was done stays done: the first of the writes is not asked again."""

    async def story(stage: Stage) -> None:
        first, second = (stage.environment.zookeeper.open("simulated:2181", 2000) for _ in range(2))
        it = RenewedClient(first, in_flight=1)
        await it.ask(lambda session: session.create("/a", b"0"))

        expired: list[int] = []

        def expiring(session: ZooKeeper) -> Future[Reply[Stat]]:
            if not expired:
                stage.server.expire(first.session_id)
                expired.append(first.session_id)
            return session.set("/b", b"1", version=0)

        await stage.other.create("/b", b"0")
        async with stage.tasks.scope("writing") as scope:
            asked = scope.spawn(
                it.ask_all([lambda session: session.set("/a", b"1", version=0), expiring]), "two writes"
            )
            await stage.tasks.sleep(5_000_000)
            assert first.state is SessionState.EXPIRED
            it.renew(second)
            answers = await asked
        assert [each.reply.value.version for each in answers] == [1, 1]
        assert (await it.ask(read("/b"))).value.data == b"1"

    Stage().play(story)


def test_a_renewed_client_that_is_closed_ends() -> None:
    async def story(stage: Stage) -> None:
        it = RenewedClient(stage.environment.zookeeper.open("simulated:2181", 2000), in_flight=1)
        await it.ask(lambda session: session.exists("/"))
        await it.session.close()
        with pytest.raises(SessionClosed):
            await it.ask(read("/"))

    Stage().play(story)


def test_a_fence_that_holds_lets_each_operation_answer_for_itself() -> None:
    async def story(stage: Stage) -> None:
        it = client(stage)
        await it.create_if_missing("/epoch", b"1")
        answers = await it.fenced(Check("/epoch", 0), [Create("/a", b""), Set("/x", b""), Create("/b", b"")])
        assert [type(each.error) for each in answers] == [type(None), NoNode, type(None)]
        assert (await it.fenced(Check("/epoch", 0), [Create("/a", b"")]))[0].error.__class__ is NodeExists

    Stage().play(story)


def test_a_fence_that_does_not_hold_is_raised_and_nothing_is_written() -> None:
    async def story(stage: Stage) -> None:
        it = client(stage)
        await it.create_if_missing("/epoch", b"1")
        with pytest.raises(BadVersion) as raised:
            await it.fenced(Check("/epoch", 3), [Create("/a", b""), Create("/b", b"")])
        assert raised.value.path == "/epoch"
        assert (await it.ask(lambda session: session.exists("/a"))).value is None

    Stage().play(story)


@pytest.mark.parametrize("together", [1, 2, 3, 500])
def test_operations_behind_one_fence_answer_as_if_each_had_its_own(together: int) -> None:
    async def story(stage: Stage) -> None:
        it = client(stage)
        await it.create_if_missing("/epoch", b"1")
        await it.create_if_missing("/b", b"")
        operations: list[WriteOperation] = [
            Create("/a", b"1"),
            Create("/b", b"2"),
            Set("/x", b""),
            Create("/c", b"3"),
            Set("/b", b"4", 0),
        ]
        answers = await it.fenced(Check("/epoch", 0), operations, together=together)
        assert [type(each.error) for each in answers] == [type(None), NodeExists, NoNode, type(None), type(None)]
        assert [answers[0].reply.value, answers[3].reply.value] == ["/a", "/c"]
        changed = answers[4].reply.value
        assert isinstance(changed, Stat)
        assert changed.version == 1
        assert (await it.ask(read("/b"))).value.data == b"4"

    Stage().play(story)


def test_many_operations_are_few_requests_if_none_is_refused() -> None:
    async def story(stage: Stage) -> None:
        it = client(stage)
        await it.create_if_missing("/epoch", b"1")
        answers = await it.fenced(Check("/epoch", 0), [Create(f"/a{each}", b"") for each in range(25)], together=10)
        assert [each.error for each in answers] == [None] * 25
        assert sum(each.kind is Kind.INVOKED and each.of("op") == "multi" for each in stage.sink.events) == 3

    Stage().play(story)


def test_a_fence_that_falls_between_two_multis_is_raised() -> None:
    async def story(stage: Stage) -> None:
        it = client(stage)
        await it.create_if_missing("/epoch", b"1")
        raises_epoch = Set("/epoch", b"2", 0)
        with pytest.raises(BadVersion) as raised:
            await it.fenced(Check("/epoch", 0), [Create("/a", b""), raises_epoch, Create("/b", b"")], together=2)
        assert raised.value.path == "/epoch"
        assert (await it.ask(lambda session: session.exists("/b"))).value is None

    Stage().play(story)


def test_many_znodes_are_read_together_each_with_its_own_error() -> None:
    async def story(stage: Stage) -> None:
        await stage.other.create("/a", b"1")
        await stage.other.create("/b", b"2")
        it = client(stage)
        found = await it.begin_to_read(["/b", "/x", "/a"]).nodes()
        assert [each.data if isinstance(each, Node) else type(each) for each in found] == [b"2", NoNode, b"1"]
        stage.server.break_connection(it.session.session_id)
        again = await it.begin_to_read(["/a"]).nodes()
        assert isinstance(again[0], Node)

    Stage().play(story)


def test_paths_that_are_there_stay_as_they_are() -> None:
    async def story(stage: Stage) -> None:
        it = client(stage)
        await it.ensure_path("/a/b/c")
        await it.ensure_path("/a/b/d")
        assert (await it.ask(lambda session: session.children("/a/b"))).value.names == ("c", "d")

    Stage().play(story)
