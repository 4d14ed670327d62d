"""A connection breaks within a session: what is lost, what is told, what goes on."""

from __future__ import annotations

from typing import Any

import pytest
from conformance_harness import SHORT_TIMEOUT_MS, Harness, also_kazoo

from rebalance_lab.history.transactions import TransactionKind
from rebalance_lab.kernel import Future
from rebalance_lab.world.errors import ConnectionLoss, NodeExists
from rebalance_lab.world.ports import SessionEventKind, SessionState, WatchKind


@also_kazoo
def test_a_broken_connection_is_made_again_within_the_session(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        before = session.session_id
        for _ in range(3):
            await h.break_connection(session)
            assert session.state is SessionState.CONNECTING
            event = await h.expect(session, SessionEventKind.CONNECTED)
            assert session.state is SessionState.CONNECTED
            assert event.session_id == session.session_id == before
        await session.create(f"{h.root}/n", b"")

    conform(story)


@also_kazoo
def test_pending_operations_fail_with_connection_loss(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        await session.get(h.root)
        order: list[str] = []
        pending: list[Future[Any]] = [session.get(h.root), session.create(f"{h.root}/n", b""), session.exists(h.root)]
        for n, future in enumerate(pending):
            future.on(lambda _, n=n: order.append(f"operation {n}"))  # type: ignore[misc]
        h.break_now(session)
        await h.expect(session, SessionEventKind.DISCONNECTED)
        for future in pending:
            with pytest.raises(ConnectionLoss) as caught:
                await future
            assert caught.value.zxid == -1
            assert caught.value.session_id == session.session_id
        if h.kind != "kazoo":  # which fails what it has sent and what it has not from two threads
            assert order == [f"operation {n}" for n in range(3)]
        await h.expect(session, SessionEventKind.CONNECTED)
        assert (await session.get(h.root)).value.data == b""

    conform(story)


def test_operations_asked_for_while_disconnected_wait_for_the_next_connection(conform):
    async def story(h: Harness) -> None:
        session, observer = await h.connected(), await h.connected()
        await h.away(session)
        queued = [session.create(f"{h.root}/{n}", b"") for n in range(3)]
        read = session.children(h.root)
        await observer.exists(h.root)
        assert not any(future.done for future in queued)
        h.release(session)
        assert (await read).value.names == ("0", "1", "2")
        assert [(await future).value for future in queued] == [f"{h.root}/{n}" for n in range(3)]
        await h.expect(session, SessionEventKind.CONNECTED)

    conform(story)


def test_queued_operations_fail_when_the_next_attempt_does(conform):
    """The attempt hangs for the connect timeout, which is the session's."""

    async def story(h: Harness) -> None:
        session = await h.connected(SHORT_TIMEOUT_MS)
        await h.away(session)
        queued = session.create(f"{h.root}/n", b"")
        with pytest.raises(ConnectionLoss):
            await queued
        assert session.state is SessionState.CONNECTING
        assert len(session.events) == 0, "it was told already that it is disconnected"

    conform(story)


def test_a_change_made_while_disconnected_fires_after_the_reconnect(conform):
    async def story(h: Harness) -> None:
        session, writer = await h.connected(), await h.connected()
        paths = {name: f"{h.root}/{name}" for name in ("changed", "deleted", "created", "parent", "same")}
        for name in ("changed", "deleted", "parent", "same"):
            await writer.create(paths[name], b"")
        watches = {
            "changed": (await session.get(paths["changed"], watch=True)).watch,
            "deleted": (await session.get(paths["deleted"], watch=True)).watch,
            "deleted child": (await session.children(paths["deleted"], watch=True)).watch,
            "created": (await session.exists(paths["created"], watch=True)).watch,
            "parent": (await session.children(paths["parent"], watch=True)).watch,
            "same data": (await session.get(paths["same"], watch=True)).watch,
            "same child": (await session.children(paths["same"], watch=True)).watch,
            "still missing": (await session.exists(f"{h.root}/other", watch=True)).watch,
        }
        await h.away(session)
        await writer.set(paths["changed"], b"1")
        await writer.delete(paths["deleted"])
        await writer.create(paths["created"], b"")
        await writer.create(f"{paths['parent']}/child", b"")
        assert not any(watch.done for watch in watches.values())
        await h.back(session)
        await session.exists(h.root)
        assert {name: watch.result().kind for name, watch in watches.items() if watch.done} == {
            "changed": WatchKind.CHANGED,
            "deleted": WatchKind.DELETED,
            "deleted child": WatchKind.DELETED,
            "created": WatchKind.CREATED,
            "parent": WatchKind.CHILD,
        }

    conform(story)


def test_a_watch_survives_a_reconnect_and_fires_for_a_later_change(conform):
    async def story(h: Harness) -> None:
        session, writer = await h.connected(), await h.connected()
        path = f"{h.root}/n"
        await writer.create(path, b"")
        data = (await session.get(path, watch=True)).watch
        child = (await session.children(path, watch=True)).watch
        missing = (await session.exists(f"{path}/c", watch=True)).watch
        for _ in range(2):
            await h.break_connection(session)
            await h.expect(session, SessionEventKind.CONNECTED)
        await session.exists(h.root)
        assert not any(watch.done for watch in (data, child, missing))
        await writer.set(path, b"1")
        await session.exists(h.root)
        assert data.result().kind is WatchKind.CHANGED
        await writer.create(f"{path}/c", b"")
        await session.exists(h.root)
        assert (child.result().kind, missing.result().kind) == (WatchKind.CHILD, WatchKind.CREATED)

    conform(story)


def test_two_changes_while_disconnected_are_one_event(conform):
    async def story(h: Harness) -> None:
        session, writer = await h.connected(), await h.connected()
        path = f"{h.root}/n"
        await writer.create(path, b"")
        watch = (await session.get(path, watch=True)).watch
        told: list[WatchKind] = []
        watch.on(lambda each: told.append(each.result().kind))
        await h.away(session)
        await writer.set(path, b"1")
        await writer.set(path, b"2")
        await writer.delete(path)
        await writer.create(path, b"3")
        await h.back(session)
        await session.exists(h.root)
        assert told == [WatchKind.CHANGED], "that it was deleted meanwhile is not told"
        assert (await session.get(path)).value.data == b"3"

    conform(story)


def test_the_event_of_a_reconnect_comes_before_what_it_lets_through(conform):
    """Who hears CONNECTED has not missed a watch: queued reads come after the re-armed watches."""

    async def story(h: Harness) -> None:
        session, writer = await h.connected(), await h.connected()
        order: list[str] = []
        (await session.children(h.root, watch=True)).watch.on(lambda _: order.append("watch"))
        await h.away(session)
        await writer.create(f"{h.root}/a", b"")
        read = session.children(h.root)
        read.on(lambda reply: order.append(" ".join(reply.result().value.names)))
        h.release(session)
        await read
        assert order == ["watch", "a"]
        await h.expect(session, SessionEventKind.CONNECTED)

    conform(story)


@also_kazoo
def test_a_reply_lost_after_it_was_applied(conform):
    """The outcome is unknown to the client, and known to the log: by session and cxid."""

    async def story(h: Harness) -> None:
        session, observer = await h.connected(), await h.connected()
        path = f"{h.root}/n"
        await session.exists(h.root)
        h.lose_next_reply(session)
        with pytest.raises(ConnectionLoss):
            await session.create(path, b"mine", ephemeral=True)
        assert (await observer.exists(path)).value.ephemeral_owner == session.session_id
        await h.expect(session, SessionEventKind.DISCONNECTED)
        await h.expect(session, SessionEventKind.CONNECTED)
        with pytest.raises(NodeExists):
            await session.create(path, b"mine", ephemeral=True)
        node = (await session.get(path)).value
        assert (node.data, node.stat.ephemeral_owner) == (b"mine", session.session_id)
        logged = [txn for txn in h.transactions() if txn.path == path]
        assert [(txn.kind, txn.session_id, txn.zxid) for txn in logged] == [
            (TransactionKind.CREATE, session.session_id, node.stat.czxid)
        ]

    conform(story)


@also_kazoo
def test_a_reply_lost_is_lost_once(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        await session.create(f"{h.root}/n", b"")
        h.lose_next_reply(session)
        with pytest.raises(ConnectionLoss):
            await session.set(f"{h.root}/n", b"1")
        await h.expect(session, SessionEventKind.DISCONNECTED)
        await h.expect(session, SessionEventKind.CONNECTED)
        changed = await session.set(f"{h.root}/n", b"2")
        assert changed.value.version == 2, "both were applied"

    conform(story)
