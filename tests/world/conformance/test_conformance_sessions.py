"""Sessions: opening, negotiation, closing, ephemeral znodes, expiry."""

from __future__ import annotations

from typing import Any

import pytest
from conformance_harness import LONG_TIMEOUT_MS, SHORT_TIMEOUT_MS, TICK_MS, Harness, also_kazoo

from rebalance_lab.kernel import Future
from rebalance_lab.world.errors import ConnectionLoss, NodeExists, SessionClosed, SessionExpired
from rebalance_lab.world.ports import SessionEventKind, SessionState, WatchKind


def error_of(future: Future[Any]) -> BaseException | None:
    assert future.done, f"{future!r} should be done"
    return future.error


@also_kazoo
def test_a_session_opens_and_tells(conform):
    async def story(h: Harness) -> None:
        session = h.open()
        assert session.state is SessionState.CONNECTING
        event = await h.expect(session, SessionEventKind.CONNECTED)
        assert session.state is SessionState.CONNECTED
        assert session.session_id == event.session_id != 0
        other = await h.connected()
        assert other.session_id != session.session_id

    conform(story)


@pytest.mark.parametrize(
    ("asked_ms", "granted_ms"),
    [
        (SHORT_TIMEOUT_MS // 2, SHORT_TIMEOUT_MS),
        (SHORT_TIMEOUT_MS, SHORT_TIMEOUT_MS),
        (3333, 3333),
        (LONG_TIMEOUT_MS, LONG_TIMEOUT_MS),
        (60_000, LONG_TIMEOUT_MS),
    ],
)
def test_the_timeout_is_negotiated_within_the_servers_bounds(conform, asked_ms: int, granted_ms: int):
    async def story(h: Harness) -> None:
        session = await h.connected(asked_ms)
        assert session.negotiated_timeout_ms == granted_ms

    conform(story)


def test_operations_asked_for_before_the_connection_wait_for_it(conform):
    async def story(h: Harness) -> None:
        session = h.open()
        created = session.create(f"{h.root}/early", b"1")
        read = session.get(f"{h.root}/early")
        assert not created.done
        assert (await read).value.data == b"1"
        assert created.done
        await h.expect(session, SessionEventKind.CONNECTED)

    conform(story)


def test_close_ends_the_session_and_takes_its_ephemerals(conform):
    async def story(h: Harness) -> None:
        session, observer = await h.connected(), await h.connected()
        path = f"{h.root}/e"
        await session.create(path, b"", ephemeral=True)
        await session.create(f"{h.root}/p", b"")
        stat = (await observer.exists(path, watch=True)).value
        assert stat is not None
        assert stat.ephemeral_owner == session.session_id
        watch = (await observer.exists(path, watch=True)).watch
        own = (await session.exists(path, watch=True)).watch
        await session.close()
        assert session.state is SessionState.CLOSED
        assert (await watch).kind is WatchKind.DELETED
        assert (await observer.children(h.root)).value.names == ("p",)
        assert len(session.events) == 0, "a session that was closed has nothing to tell"
        assert isinstance(error_of(own), SessionClosed) or own.result().kind is WatchKind.DELETED
        assert isinstance(error_of(session.get(h.root)), SessionClosed)
        assert session.close().done, "closing again is done at once"

    conform(story)


def test_operations_before_close_are_answered_before_it(conform):
    async def story(h: Harness) -> None:
        session, observer = await h.connected(), await h.connected()
        order: list[str] = []
        session.create(f"{h.root}/last", b"").on(lambda reply: order.append(f"create {reply.error}"))
        closed = session.close()
        late = session.create(f"{h.root}/late", b"")
        assert isinstance(error_of(late), SessionClosed)
        await closed
        order.append("closed")
        assert order == ["create None", "closed"]
        assert (await observer.children(h.root)).value.names == ("last",)

    conform(story)


def test_a_watch_fails_when_its_session_is_closed(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        watches = [
            (await session.get(h.root, watch=True)).watch,
            (await session.children(h.root, watch=True)).watch,
            (await session.exists(f"{h.root}/missing", watch=True)).watch,
        ]
        await session.close()
        assert all(isinstance(error_of(watch), SessionClosed) for watch in watches)

    conform(story)


@also_kazoo
def test_ephemerals_outlive_a_lost_connection_and_the_session_goes_on(conform):
    async def story(h: Harness) -> None:
        session, observer = await h.connected(), await h.connected()
        before = session.session_id
        path = f"{h.root}/e"
        await session.create(path, b"", ephemeral=True)
        watch = (await observer.exists(path, watch=True)).watch
        await h.away(session)
        assert session.state is SessionState.CONNECTING
        stat = (await observer.exists(path)).value
        assert stat is not None and stat.ephemeral_owner == before
        await h.back(session)
        assert session.session_id == before
        with pytest.raises(NodeExists):
            await session.create(path, b"", ephemeral=True)
        assert not watch.done

    conform(story)


@also_kazoo
def test_ephemerals_go_when_the_server_gives_the_session_up(conform):
    """Not before its timeout, and at most a tick and the last ping's age after it."""

    async def story(h: Harness) -> None:
        session, observer = await h.connected(SHORT_TIMEOUT_MS), await h.connected()
        path = f"{h.root}/e"
        await session.create(path, b"", ephemeral=True)
        watch = (await observer.exists(path, watch=True)).watch
        began_us = h.kernel.now_us()
        await h.away(session)
        await h.sleep_ms(SHORT_TIMEOUT_MS / 3)
        assert (await observer.exists(path)).value is not None
        event = await watch
        gone_after_ms = (h.kernel.now_us() - began_us) / 1000
        assert event.kind is WatchKind.DELETED
        assert SHORT_TIMEOUT_MS * 2 / 3 - 1 <= gone_after_ms <= SHORT_TIMEOUT_MS + TICK_MS + 300
        assert session.state is SessionState.CONNECTING, "the client cannot know yet"
        h.release(session)
        expired = await h.expect(session, SessionEventKind.EXPIRED)
        assert expired.session_id == session.session_id
        assert session.state is SessionState.EXPIRED

    conform(story)


def test_expiry_fails_what_waits_and_all_that_is_asked_later(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        path = f"{h.root}/e"
        await session.create(path, b"", ephemeral=True)
        watches = [
            (await session.get(h.root, watch=True)).watch,
            (await session.children(h.root, watch=True)).watch,
            (await session.exists(f"{h.root}/missing", watch=True)).watch,
        ]
        await h.away(session)
        h.expire(session)
        pending: list[Future[Any]] = [session.get(h.root), session.create(f"{h.root}/x", b"")]
        h.release(session)
        await h.expect(session, SessionEventKind.EXPIRED)
        assert session.state is SessionState.EXPIRED
        futures: list[Future[Any]] = [*pending, *watches, session.exists(h.root), session.delete(path)]
        for future in futures:
            assert isinstance(error_of(future), SessionExpired)
        assert session.close().done, "nothing is left to close"
        assert session.state is SessionState.EXPIRED
        successor = await h.connected()
        assert (await successor.children(h.root)).value.names == ()

    conform(story)


@also_kazoo
def test_a_session_expired_while_connected_is_told(conform):
    async def story(h: Harness) -> None:
        session, observer = await h.connected(), await h.connected()
        await session.create(f"{h.root}/e", b"", ephemeral=True)
        watch = (await observer.children(h.root, watch=True)).watch
        h.expire(session)
        assert (await watch).kind is WatchKind.CHILD
        assert (await observer.children(h.root)).value.names == ()
        await h.expect(session, SessionEventKind.DISCONNECTED)
        await h.expect(session, SessionEventKind.EXPIRED)

    conform(story)


def test_who_is_closed_on_another_connection_gets_no_event_of_it(conform):
    """The server closes the client's connection when the session moves, and only then ends it."""

    async def story(h: Harness) -> None:
        session = await h.connected()
        path = f"{h.root}/e"
        await session.create(path, b"", ephemeral=True)
        watches = [(await session.exists(path, watch=True)).watch, (await session.children(h.root, watch=True)).watch]
        h.expire(session)
        await h.expect(session, SessionEventKind.DISCONNECTED)
        assert not any(watch.done for watch in watches)
        await h.expect(session, SessionEventKind.EXPIRED)
        assert all(isinstance(error_of(watch), SessionExpired) for watch in watches)

    conform(story)


def test_who_was_stopped_past_its_session_gets_nothing_that_came_meanwhile(conform):
    """Neither the answer to what it asked before, nor the events of its session's end."""

    async def story(h: Harness) -> None:
        session = await h.connected(SHORT_TIMEOUT_MS)
        path = f"{h.root}/e"
        await session.create(path, b"", ephemeral=True)
        watches = [(await session.exists(path, watch=True)).watch, (await session.children(h.root, watch=True)).watch]
        read = session.get(h.root)
        await h.stop(session, 2 * SHORT_TIMEOUT_MS)
        await h.expect(session, SessionEventKind.DISCONNECTED)
        assert isinstance(error_of(read), ConnectionLoss)
        await h.expect(session, SessionEventKind.EXPIRED)
        assert all(isinstance(error_of(watch), SessionExpired) for watch in watches)

    conform(story)


def test_who_was_stopped_for_less_than_its_read_timeout_gets_it_all(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        watch = (await session.children(h.root, watch=True)).watch
        created = session.create(f"{h.root}/n", b"")
        await h.stop(session, 300)
        assert (await created).value == f"{h.root}/n"
        assert watch.result().kind is WatchKind.CHILD
        assert session.state is SessionState.CONNECTED and len(session.events) == 0

    conform(story)


def test_a_closed_session_without_a_connection_is_left_to_expire(conform):
    """As Java's client: it does not connect only to say good-bye."""

    async def story(h: Harness) -> None:
        session, observer = await h.connected(LONG_TIMEOUT_MS), await h.connected()
        await session.create(f"{h.root}/e", b"", ephemeral=True)
        h.hold(session)
        h.break_now(session)
        await h.expect(session, SessionEventKind.DISCONNECTED)
        closed = session.close()
        await closed
        assert session.state is SessionState.CLOSED
        assert isinstance(error_of(session.get(h.root)), SessionClosed)
        h.release(session)
        assert (await observer.children(h.root)).value.names == ("e",)
        h.expire(session)
        assert (await observer.children(h.root)).value.names == ()

    conform(story)
