"""ZkClient under lost connections and expired sessions, and Kafka's helpers on it."""

from __future__ import annotations

import pytest
from client_stage import SESSION_TIMEOUT_MS, Stage

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.kernel import TimedOut
from rebalance_lab.world.errors import NodeExists, NoNode
from rebalance_lab.world.ports import SessionState
from rebalance_lab.zkclient import ZkClient, ZkTimeoutException
from rebalance_lab.zkclient.client import ZkSettings
from rebalance_lab.zkclient.helpers import (
    children_or_none,
    create_ephemeral,
    create_ephemeral_expect_conflict,
    create_ephemeral_handle_bug,
    read_or_none,
)


def on_create(stage: Stage, path: str, act: object) -> None:
    """Call `act` when the client asks to create `path` for the first time."""
    done: list[Event] = []
    write = stage.sink.write

    def watch(event: Event) -> None:
        write(event)
        asked = event.actor == "m1" and event.kind is Kind.INVOKED and event.of("op") == "create"
        if asked and event.of("path") == path and not done:
            done.append(event)
            act()  # type: ignore[operator]

    stage.sink.write = watch


# -- retries --------------------------------------------------------------------------------


def test_operations_outlive_their_connection_and_their_session() -> None:
    async def story(stage: Stage) -> None:
        await stage.other.create("/t", b"1")
        stage.server.break_connection(stage.client.session.session_id)
        assert (await stage.client.read("/t")).data == b"1"
        first = stage.client.session.session_id
        stage.server.expire(first)
        assert (await stage.client.read("/t")).data == b"1"
        await stage.tasks.sleep(2_000_000)
        assert (await stage.client.read("/t")).data == b"1"
        assert stage.client.session.session_id != first

    Stage().play(story)


def test_operations_wait_without_end_for_a_server() -> None:
    async def story(stage: Stage) -> None:
        await stage.other.create("/t", b"1")
        stage.server.hold_connections(stage.process)
        stage.server.break_connection(stage.client.session.session_id)
        await stage.settle()
        with pytest.raises(TimedOut):
            async with stage.tasks.timeout(600_000_000):
                await stage.client.read("/t")
        assert stage.client.session.state is SessionState.CONNECTING
        stage.server.release_connections(stage.process)
        assert (await stage.client.read("/t")).data == b"1"

    Stage().play(story)


def test_definite_errors_are_not_tried_again() -> None:
    async def story(stage: Stage) -> None:
        with pytest.raises(NoNode):
            await stage.client.read("/t")
        with pytest.raises(NoNode):
            await stage.client.create("/t/x", b"")
        await stage.client.create("/t", b"")
        with pytest.raises(NodeExists):
            await stage.client.create("/t", b"")
        assert stage.operations() == ["get /t", "create /t/x", "create /t", "create /t"]

    Stage().play(story)


def test_deleting_what_is_not_there_is_no_error() -> None:
    async def story(stage: Stage) -> None:
        await stage.client.create("/t", b"")
        assert [await stage.client.delete("/t"), await stage.client.delete("/t")] == [True, False]

    Stage().play(story)


def test_deletion_looks_at_nothing() -> None:
    async def story(stage: Stage) -> None:
        await stage.other.create("/t", b"theirs", ephemeral=True)
        await stage.other.set("/t", b"newer")
        assert await stage.client.delete("/t") is True

    Stage().play(story)


# -- sessions -------------------------------------------------------------------------------


def test_expiry_tells_state_listeners_first_then_everybody_once() -> None:
    async def story(stage: Stage) -> None:
        for path in ("/ids", "/t"):
            await stage.other.create(path, b"")
        listener = stage.listener()
        await stage.client.subscribe_data_changes("/t", listener)
        await stage.client.subscribe_child_changes("/ids", listener)
        stage.client.subscribe_state_changes(listener)
        stage.client.subscribe_state_changes(listener)
        stage.server.expire(stage.client.session.session_id)
        await stage.tasks.sleep(2_000_000)
        assert stage.told == [("a", "new session"), ("a", "children", "/ids", ()), ("a", "data", "/t", b"")]
        stage.told.clear()
        await stage.other.create("/ids/x", b"")  # the new session's watches were set by those reads
        await stage.settle()
        assert stage.told == [("a", "children", "/ids", ("x",))]

    Stage().play(story)


def test_connecting_gives_up_in_time_and_leaves_nothing() -> None:
    async def story(stage: Stage) -> None:
        stage.server.hold_connections(stage.process)
        async with stage.tasks.scope("second") as scope:
            settings = ZkSettings("simulated:2181", SESSION_TIMEOUT_MS, member="g_m2")
            client = ZkClient(stage.environment, settings, scope)
            with pytest.raises(
                ZkTimeoutException, match=r"^Unable to connect to zookeeper server within timeout: 300$"
            ):
                await client.connect(300)
            assert client.session.state is SessionState.CLOSED
        stage.server.release_connections(stage.process)

    Stage().play(story)


def test_close_stops_a_listener_half_way_and_ends_the_session() -> None:
    stopped: list[str] = []

    async def story(stage: Stage) -> None:
        class Stuck:
            async def handle_child_change(self, path: str, children: tuple[str, ...] | None) -> None:
                try:
                    await stage.tasks.flag("never").wait()
                finally:
                    stopped.append(path)

        await stage.other.create("/ids", b"")
        await stage.client.subscribe_child_changes("/ids", Stuck())
        await stage.client.create("/ids/x", b"", ephemeral=True)
        await stage.settle()
        await stage.client.close()
        await stage.client.close()  # again is no error
        assert stopped == ["/ids"]
        assert (await stage.other.children("/ids")).value.names == ()

    Stage().play(story)


# -- Kafka's helpers ------------------------------------------------------------------------


def test_an_ephemeral_create_makes_the_parents_it_misses() -> None:
    async def story(stage: Stage) -> None:
        await create_ephemeral(stage.client, "/a/b/c", b"1")
        assert stage.operations() == [
            "create /a/b/c",
            "create /a/b",
            "create /a",
            "create /a/b",
            "create /a/b/c",
        ]
        assert (await stage.other.get("/a/b/c")).value.stat.ephemeral_owner == stage.client.session.session_id
        assert (await stage.other.get("/a/b")).value.stat.ephemeral_owner == 0

    Stage().play(story)


def test_parents_that_come_meanwhile_are_fine() -> None:
    async def story(stage: Stage) -> None:
        on_create(stage, "/a/b", lambda: [stage.other.create("/a", b""), stage.other.create("/a/b", b"")])
        await create_ephemeral(stage.client, "/a/b/c", b"1")
        assert await read_or_none(stage.client, "/a/b/c") == b"1"

    for seed in range(5):
        Stage(seed).play(story)


def test_a_conflict_with_our_own_data_is_success() -> None:
    async def story(stage: Stage) -> None:
        await stage.client.create("/o", b"mine", ephemeral=True)
        await create_ephemeral_expect_conflict(stage.client, "/o", b"mine")
        assert stage.operations() == ["create /o", "create /o", "get /o"]

    Stage().play(story)


def test_a_lost_reply_is_success() -> None:
    async def story(stage: Stage) -> None:
        on_create(stage, "/o", lambda: stage.server.lose_next_reply(stage.client.session.session_id))
        await create_ephemeral_expect_conflict(stage.client, "/o", b"mine")
        assert stage.details(Kind.INFO, "error") == ["ConnectionLoss"]
        assert stage.operations() == ["create /o", "create /o", "get /o"]

    Stage().play(story)


def test_a_conflict_with_other_data_is_one() -> None:
    async def story(stage: Stage) -> None:
        await stage.other.create("/o", b"theirs")
        with pytest.raises(NodeExists):
            await create_ephemeral_expect_conflict(stage.client, "/o", b"mine")

    Stage().play(story)


def test_a_conflict_that_vanishes_before_it_is_read_is_still_one() -> None:
    async def story(stage: Stage) -> None:
        await stage.other.create("/o", b"mine")
        write = stage.sink.write

        def vanish(event: Event) -> None:
            write(event)
            if event.kind is Kind.FAILED_OP and event.of("error") == "NodeExists":
                stage.server.break_connection(stage.client.session.session_id)  # the read comes later
                stage.other.delete("/o")

        stage.sink.write = vanish
        with pytest.raises(NodeExists):
            await create_ephemeral_expect_conflict(stage.client, "/o", b"mine")

    Stage().play(story)


def test_an_id_that_is_taken_is_waited_for_without_end() -> None:
    warnings: list[str] = []

    async def story(stage: Stage) -> None:
        await stage.other.create("/id", b"other")

        async with stage.tasks.scope("register") as scope:
            register = create_ephemeral_handle_bug(
                stage.client, "/id", b"{}", tasks=stage.tasks, backoff_ms=2000, warn=warnings.append
            )
            task = scope.spawn(register, "register")
            await stage.tasks.sleep(9_000_000)
            assert len(warnings) == 5 and not task.done
            await stage.other.delete("/id")
            await task
        assert await read_or_none(stage.client, "/id") == b"{}"

    Stage().play(story)
    assert warnings[0] == (
        "I wrote this conflicted ephemeral node [{}] at /id a while back in a different session, "
        "hence I will backoff for this node to be deleted by Zookeeper and retry"
    )


def test_an_id_that_vanishes_before_it_is_read_is_taken_at_once() -> None:
    warnings: list[str] = []

    async def story(stage: Stage) -> None:
        await stage.other.create("/id", b"other")
        write = stage.sink.write

        def vanish(event: Event) -> None:
            write(event)
            if event.kind is Kind.FAILED_OP and event.of("error") == "NodeExists":
                stage.server.break_connection(stage.client.session.session_id)  # the reads come later
                stage.other.delete("/id")

        stage.sink.write = vanish
        await create_ephemeral_handle_bug(
            stage.client, "/id", b"{}", tasks=stage.tasks, backoff_ms=2000, warn=warnings.append
        )
        assert await read_or_none(stage.client, "/id") == b"{}"

    Stage().play(story)
    assert warnings == []


def test_parents_are_made_only_when_asked_for() -> None:
    async def story(stage: Stage) -> None:
        with pytest.raises(NoNode):
            await stage.client.create_persistent("/a/b")
        await stage.client.create_persistent("/a/b", parents=True)
        await stage.client.create_persistent("/a/b", parents=True)
        with pytest.raises(NodeExists):
            await stage.client.create_persistent("/a/b")

    Stage().play(story)


def test_reads_that_tolerate_absence() -> None:
    async def story(stage: Stage) -> None:
        assert await read_or_none(stage.client, "/t") is None
        assert await children_or_none(stage.client, "/t") == ()
        await stage.other.create("/t", b"1")
        await stage.other.create("/t/x", b"")
        assert await read_or_none(stage.client, "/t") == b"1"
        assert await children_or_none(stage.client, "/t") == ("x",)

    Stage().play(story)
