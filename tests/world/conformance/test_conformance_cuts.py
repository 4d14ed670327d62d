"""A network that loses everything one way or both, and tells nobody."""

from __future__ import annotations

import pytest
from conformance_harness import SHORT_TIMEOUT_MS, TICK_MS, Harness

from rebalance_lab.history.transactions import TransactionKind
from rebalance_lab.world.errors import ConnectionLoss, SessionExpired
from rebalance_lab.world.ports import SessionEventKind, SessionState, WatchKind, ZooKeeper

CONNECTED, DISCONNECTED, EXPIRED = SessionEventKind.CONNECTED, SessionEventKind.DISCONNECTED, SessionEventKind.EXPIRED

#: What a busy machine may add to any time.
SLACK_MS = 400

#: When a client that hears nothing gives up: after two thirds of its session, from when it last
#: heard, which may be a ping's time ago.
GIVES_UP_MS = (SHORT_TIMEOUT_MS / 3 - SLACK_MS, SHORT_TIMEOUT_MS * 2 / 3 + SLACK_MS)


async def silent(h: Harness, session: ZooKeeper, began_us: int) -> None:
    """The client hears nothing any more, and learns it in time."""
    await h.expect(session, DISCONNECTED)
    after_ms = (h.kernel.now_us() - began_us) / 1000
    assert GIVES_UP_MS[0] <= after_ms <= GIVES_UP_MS[1]
    assert session.state is SessionState.CONNECTING


async def gone(h: Harness, observer: ZooKeeper, path: str, began_us: int, *, limit_ms: float) -> None:
    """The znode goes with its session, in time."""
    found = await observer.exists(path, watch=True)
    if found.value is not None:
        assert (await found.watch).kind is WatchKind.DELETED
    after_ms = (h.kernel.now_us() - began_us) / 1000
    assert SHORT_TIMEOUT_MS * 2 / 3 - SLACK_MS <= after_ms <= limit_ms + TICK_MS + SLACK_MS


def test_cut_both_ways_the_session_expires_and_its_client_learns_it_when_it_is_healed(conform):
    async def story(h: Harness) -> None:
        session, observer = await h.connected(SHORT_TIMEOUT_MS), await h.connected()
        path = f"{h.root}/e"
        await session.create(path, b"", ephemeral=True)
        began_us = h.kernel.now_us()
        h.cut(session, to_server=True, to_client=True)
        pending = session.create(f"{h.root}/lost", b"")
        await silent(h, session, began_us)
        assert isinstance(pending.error, ConnectionLoss)
        await gone(h, observer, path, began_us, limit_ms=SHORT_TIMEOUT_MS)
        assert session.state is SessionState.CONNECTING, "the client cannot know yet"
        assert len(session.events) == 0
        h.heal(session)
        await h.expect(session, EXPIRED)
        with pytest.raises(SessionExpired):
            await session.get(h.root)
        assert (await observer.children(h.root)).value.names == ()
        ends = [txn.kind for txn in h.transactions() if txn.session_id == session.session_id]
        assert ends == [TransactionKind.SESSION_OPENED, TransactionKind.CREATE, TransactionKind.SESSION_CLOSED]

    conform(story)


def test_cut_to_the_client_what_it_asks_is_done_and_it_does_not_know(conform):
    async def story(h: Harness) -> None:
        session, observer = await h.connected(SHORT_TIMEOUT_MS), await h.connected()
        path = f"{h.root}/e"
        appears = (await observer.exists(path, watch=True)).watch
        watch = (await session.children(h.root, watch=True)).watch
        began_us = h.kernel.now_us()
        h.cut(session, to_client=True)
        pending = session.create(path, b"", ephemeral=True)
        assert (await appears).kind is WatchKind.CREATED
        assert (await observer.exists(path)).value.ephemeral_owner == session.session_id
        await silent(h, session, began_us)
        assert isinstance(pending.error, ConnectionLoss)
        assert not watch.done
        # The client's pings arrived until it gave up.
        await gone(h, observer, path, began_us, limit_ms=GIVES_UP_MS[1] + SHORT_TIMEOUT_MS)
        h.heal(session)
        await h.expect(session, EXPIRED)
        assert isinstance(watch.error, SessionExpired)

    conform(story)


def test_cut_to_the_server_it_hears_but_is_not_heard(conform):
    async def story(h: Harness) -> None:
        session, observer = await h.connected(SHORT_TIMEOUT_MS), await h.connected()
        path = f"{h.root}/e"
        await session.create(path, b"", ephemeral=True)
        watch = (await session.exists(f"{h.root}/new", watch=True)).watch
        began_us = h.kernel.now_us()
        h.cut(session, to_server=True)
        pending = session.create(f"{h.root}/lost", b"")
        await observer.create(f"{h.root}/new", b"")
        assert (await watch).kind is WatchKind.CREATED
        await silent(h, session, began_us)
        assert isinstance(pending.error, ConnectionLoss)
        await gone(h, observer, path, began_us, limit_ms=SHORT_TIMEOUT_MS)
        h.heal(session)
        await h.expect(session, EXPIRED)
        assert (await observer.children(h.root)).value.names == ("new",)

    conform(story)


@pytest.mark.parametrize(
    "ways",
    [{"to_server": True, "to_client": True}, {"to_server": True}, {"to_client": True}],
    ids=["both", "to", "fro"],
)
def test_healed_in_time_nothing_is_lost(conform, ways: dict[str, bool]):
    """TCP sends again what was not acknowledged: a short cut is only slow."""

    async def story(h: Harness) -> None:
        session, observer = await h.connected(), await h.connected()
        watch = (await session.children(h.root, watch=True)).watch
        h.cut(session, **ways)
        asked = [session.create(f"{h.root}/{n}", b"") for n in range(3)]
        read = session.children(h.root)
        await observer.create(f"{h.root}/other", b"")
        await h.sleep_ms(150)
        assert not read.done
        assert not any(future.done for future in asked)
        h.heal(session)
        assert (await watch).kind is WatchKind.CHILD
        assert [(await future).value for future in asked] == [f"{h.root}/{n}" for n in range(3)]
        assert {"0", "1", "2"} <= set((await read).value.names)
        assert (await session.children(h.root)).value.names == ("0", "1", "2", "other")
        assert session.state is SessionState.CONNECTED
        assert len(session.events) == 0

    conform(story)


def test_new_connections_are_cut_off_too(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        before = session.session_id
        h.cut(session, to_client=True)
        await h.break_connection(session)
        asked = session.create(f"{h.root}/later", b"")
        await h.sleep_ms(300)
        assert session.state is SessionState.CONNECTING
        assert not asked.done
        h.heal(session)
        await h.expect(session, CONNECTED)
        assert session.session_id == before
        await asked

    conform(story)


def test_a_cut_concerns_its_session_alone(conform):
    async def story(h: Harness) -> None:
        cut, other = await h.connected(), await h.connected()
        h.cut(cut, to_server=True, to_client=True)
        await other.create(f"{h.root}/n", b"")
        pending = cut.get(f"{h.root}/n")
        for _ in range(10):
            await other.get(f"{h.root}/n")
        assert not pending.done
        h.heal(cut)
        assert (await pending).value.data == b""

    conform(story)
