"""Listeners: who is told what, how often, and what a notification costs."""

from __future__ import annotations

import pytest
from client_stage import Stage

from rebalance_lab.history.events import Kind


def test_a_child_change_is_told_after_two_reads_that_watch_again() -> None:
    async def story(stage: Stage) -> None:
        await stage.other.create("/ids", b"")
        assert await stage.client.subscribe_child_changes("/ids", stage.listener()) == ()
        for name in ("x", "y"):
            await stage.other.create(f"/ids/{name}", b"")
            await stage.settle()
        assert stage.told == [("a", "children", "/ids", ("x",)), ("a", "children", "/ids", ("x", "y"))]
        assert stage.operations() == ["exists /ids", "children /ids"] * 3

    Stage().play(story)


def test_two_changes_before_the_watch_is_set_again_are_one_notification() -> None:
    async def story(stage: Stage) -> None:
        await stage.other.create("/ids", b"")
        await stage.client.subscribe_child_changes("/ids", stage.listener())
        first = stage.other.create("/ids/x", b"")
        await stage.other.create("/ids/y", b"")
        await first
        await stage.settle()
        assert stage.told == [("a", "children", "/ids", ("x", "y"))]

    Stage().play(story)


def test_children_of_what_is_not_there_yet() -> None:
    async def story(stage: Stage) -> None:
        assert await stage.client.subscribe_child_changes("/ids", stage.listener()) is None
        await stage.other.create("/ids", b"")
        await stage.settle()
        await stage.other.create("/ids/x", b"")
        await stage.settle()
        assert stage.told == [("a", "children", "/ids", ()), ("a", "children", "/ids", ("x",))]

    Stage().play(story)


def test_a_deletion_ends_two_watches_and_is_told_once() -> None:
    async def story(stage: Stage) -> None:
        await stage.other.create("/ids", b"")
        await stage.client.subscribe_child_changes("/ids", stage.listener())
        await stage.other.delete("/ids")
        await stage.settle()
        await stage.other.create("/ids", b"")
        await stage.settle()
        assert stage.told == [("a", "children", "/ids", None), ("a", "children", "/ids", ())]

    Stage().play(story)


def test_data_changes_creation_and_deletion() -> None:
    async def story(stage: Stage) -> None:
        await stage.client.subscribe_data_changes("/t", stage.listener())
        await stage.other.create("/t", b"1")
        await stage.settle()
        await stage.other.set("/t", b"2")
        await stage.settle()
        await stage.other.delete("/t")
        await stage.settle()
        assert stage.told == [("a", "data", "/t", b"1"), ("a", "data", "/t", b"2"), ("a", "deleted", "/t")]
        assert stage.operations() == ["exists /t", *["exists /t", "get /t"] * 3]

    Stage().play(story)


def test_data_and_children_of_one_path_have_each_their_own_listeners() -> None:
    async def story(stage: Stage) -> None:
        await stage.other.create("/t", b"1")
        await stage.client.subscribe_child_changes("/t", stage.listener("child"))
        await stage.client.subscribe_data_changes("/t", stage.listener("data"))
        await stage.other.create("/t/x", b"")
        await stage.settle()
        await stage.other.set("/t", b"2")
        await stage.settle()
        assert stage.told == [("child", "children", "/t", ("x",)), ("data", "data", "/t", b"2")]
        await stage.other.delete("/t/x")
        await stage.settle()
        await stage.other.delete("/t")
        await stage.settle()
        assert stage.told[3:] == [("child", "children", "/t", None), ("data", "deleted", "/t")]

    Stage().play(story)


def test_a_listener_that_is_known_is_not_added_again_another_is() -> None:
    async def story(stage: Stage) -> None:
        await stage.other.create("/ids", b"")
        first, second = stage.listener("a"), stage.listener("b")
        for listener in (first, first, second):
            await stage.client.subscribe_child_changes("/ids", listener)
        await stage.other.create("/ids/x", b"")
        await stage.settle()
        assert stage.told == [("a", "children", "/ids", ("x",)), ("b", "children", "/ids", ("x",))]

    Stage().play(story)


def test_any_read_of_a_path_with_listeners_watches_it() -> None:
    async def story(stage: Stage) -> None:
        await stage.client.subscribe_data_changes("/t", stage.listener())  # watches that it is created
        await stage.other.create("/t", b"1")
        await stage.client.read("/t")
        await stage.client.exists("/elsewhere")
        await stage.settle()
        fired = stage.details(Kind.WATCH_FIRED, "path")
        await stage.other.create("/elsewhere", b"")
        await stage.other.set("/t", b"2")
        await stage.settle()
        assert set(fired + stage.details(Kind.WATCH_FIRED, "path")) == {"/t"}
        assert stage.told[-1] == ("a", "data", "/t", b"2")

    Stage().play(story)


def test_an_error_in_a_listener_is_logged_and_the_queue_goes_on() -> None:
    async def story(stage: Stage) -> None:
        await stage.other.create("/ids", b"")
        bad, good = stage.listener("bad"), stage.listener("good")
        bad.error = RuntimeError("no")
        await stage.client.subscribe_child_changes("/ids", bad)
        await stage.client.subscribe_child_changes("/ids", good)
        await stage.other.create("/ids/x", b"")
        await stage.settle()
        assert [name for name, *_ in stage.told] == ["bad", "good"]
        assert stage.details(Kind.WARNED, "message") == ["Error handling event ZkEvent[Children of /ids changed]: no"]

    Stage().play(story)


def test_listeners_are_called_one_after_another() -> None:
    spans: list[tuple[str, int, int]] = []

    async def story(stage: Stage) -> None:
        class Slow:
            def __init__(self, name: str) -> None:
                self.name = name

            async def handle_child_change(self, path: str, children: tuple[str, ...] | None) -> None:
                began = stage.tasks.now_us()
                await stage.tasks.sleep(20_000)
                spans.append((self.name, began, stage.tasks.now_us()))

        await stage.other.create("/ids", b"")
        for name in ("a", "b"):
            await stage.client.subscribe_child_changes("/ids", Slow(name))
        await stage.other.create("/ids/x", b"")
        await stage.tasks.sleep(100_000)
        (first, _, ended), (second, began, _) = spans
        assert (first, second) == ("a", "b") and ended <= began
        queued = [event.n for event in stage.sink.events if event.kind is Kind.NOTIFICATION_QUEUED]
        assert queued == stage.details(Kind.NOTIFICATION_HANDLED, "of")

    Stage().play(story)


@pytest.mark.parametrize("seed", range(10))
def test_no_change_is_missed_across_reconnects(seed: int) -> None:
    async def story(stage: Stage) -> None:
        await stage.other.create("/ids", b"")
        await stage.client.subscribe_child_changes("/ids", stage.listener())
        for each in range(5):
            stage.server.break_connection(stage.client.session.session_id)
            await stage.other.create(f"/ids/{each}", b"")
            await stage.tasks.sleep(2_200_000)  # longer than any reconnect takes
            assert stage.told[-1][3] == tuple(str(known) for known in range(each + 1))

    Stage(seed).play(story)
