"""Sessions in foul weather: cut connections, lost replies, servers that stop, expiry."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from rebalance_lab.history.transactions import TransactionKind
from rebalance_lab.world import errors
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper
from rebalance_lab.world.live.session import LiveSession
from rebalance_lab.world.live.transaction_log import TransactionLog, read
from rebalance_lab.world.ports import SessionEventKind, SessionState, WatchKind


def expire_at_the_server(session: LiveSession, connect: str) -> None:
    """A second connection with the same session id and password closes the session."""
    thief = KazooClient(connect, client_id=(session.session_id, session._password))
    thief.start(timeout=60)
    assert thief.client_id[0] == session.session_id
    thief.stop()
    thief.close()


async def reconnected(bench: Any, session: LiveSession) -> None:
    await bench.seen(session, SessionEventKind.DISCONNECTED)
    await bench.seen(session, SessionEventKind.CONNECTED)


# -- a cut connection ---------------------------------------------------------------------------


def test_a_cut_connection_is_made_anew_in_the_same_session(bench: Any) -> None:
    async def story() -> None:
        proxy = bench.proxy()
        session = await bench.connected(proxy.connect_string)
        before = session.session_id
        await session.create(f"{bench.root}/e", b"", ephemeral=True)
        pending = session.get(bench.root)
        assert proxy.cut() == 1
        with pytest.raises(errors.ConnectionLoss):
            await pending
        assert session.state is SessionState.CONNECTING
        assert session.last_loss.startswith(proxy.connect_string)
        queued = session.exists(f"{bench.root}/e")
        await reconnected(bench, session)
        assert session.session_id == before
        assert (await queued).value.ephemeral_owner == before
        assert proxy.counters.connections == 2

    bench.run(story)


@pytest.mark.parametrize("when", ["meanwhile", "afterwards"])
def test_watches_survive_a_reconnect(bench: Any, when: str) -> None:
    """SetWatches: each kind of watch tells of a change made while disconnected, or after."""
    root = bench.root

    async def story() -> None:
        proxy = bench.proxy()
        session, other = await bench.connected(proxy.connect_string), await bench.connected()
        for name in ("changed", "deleted", "kept"):
            await other.create(f"{root}/{name}", b"")
        changed = (await session.get(f"{root}/changed", watch=True)).watch
        deleted = (await session.exists(f"{root}/deleted", watch=True)).watch
        kept = (await session.get(f"{root}/kept", watch=True)).watch
        created = (await session.exists(f"{root}/created", watch=True)).watch
        child = (await session.children(root, watch=True)).watch

        async def change() -> None:
            await other.set(f"{root}/changed", b"x")
            await other.delete(f"{root}/deleted")
            await other.create(f"{root}/created", b"")

        proxy.hold()
        proxy.cut()
        await bench.seen(session, SessionEventKind.DISCONNECTED)
        if when == "meanwhile":
            await change()
            assert not any(watch.done for watch in (changed, deleted, created, child))
        proxy.release()
        await bench.seen(session, SessionEventKind.CONNECTED)
        if when == "afterwards":
            await change()
        kinds = [(await watch).kind for watch in (changed, deleted, created, child)]
        assert kinds == [WatchKind.CHANGED, WatchKind.DELETED, WatchKind.CREATED, WatchKind.CHILD]
        assert (await session.get(f"{root}/kept")).value.data == b""
        assert not kept.done

    bench.run(story)


def test_a_change_seen_before_the_cut_does_not_fire_again(bench: Any) -> None:
    async def story() -> None:
        proxy = bench.proxy()
        session = await bench.connected(proxy.connect_string)
        await session.set(bench.root, b"x")
        watch = (await session.get(bench.root, watch=True)).watch
        proxy.cut()
        await reconnected(bench, session)
        await session.exists(bench.root)  # comes after all that SetWatches fires
        assert not watch.done

    bench.run(story)


def test_more_watches_than_one_request_holds(bench: Any) -> None:
    """3,000 paths of 200 bytes: five SetWatches, each below the server's limit."""
    paths = [f"{bench.root}/{number:04}-{'w' * 200}" for number in range(3000)]

    async def story() -> None:
        proxy = bench.proxy()
        session, other = await bench.connected(proxy.connect_string), await bench.connected()
        watches = [reply.watch for reply in [await future for future in [session.exists(p, watch=True) for p in paths]]]
        proxy.cut()
        await reconnected(bench, session)
        for write in [other.create(path, b"") for path in paths[::500]]:
            await write
        for watch in watches[::500]:
            assert (await watch).kind is WatchKind.CREATED
        await session.exists(bench.root)
        assert sum(watch.done for watch in watches) == len(paths[::500])

    bench.run(story)


def test_a_reply_lost_after_it_was_applied(bench: Any) -> None:
    """The caller learns ConnectionLoss; the transaction log tells, by session and cxid, that
    the write was done."""
    path = f"{bench.root}/once"

    async def story() -> int:
        proxy = bench.proxy()
        session = await bench.connected(proxy.connect_string)
        lost = proxy.lose_next_reply()
        with pytest.raises(errors.ConnectionLoss):
            await session.create(path, b"mine", ephemeral=True)
        xid = await lost
        await reconnected(bench, session)
        assert proxy.counters.replies_lost == 1
        with pytest.raises(errors.NodeExists):
            await session.create(path, b"mine", ephemeral=True)
        assert (await session.exists(path)).value.ephemeral_owner == session.session_id
        return xid

    xid = bench.run(story)
    (applied,) = [txn for txn in read(bench.server.transaction_dir) if txn.path == path]
    assert (applied.kind, applied.cxid, applied.data) == (TransactionKind.CREATE, xid, b"mine")


def test_what_is_queued_fails_with_the_attempt(bench: Any) -> None:
    async def story() -> None:
        proxy = bench.proxy()
        session = await bench.connected(proxy.connect_string)
        proxy.hold()
        proxy.cut()
        await bench.seen(session, SessionEventKind.DISCONNECTED)
        with pytest.raises(errors.ConnectionLoss):
            await session.get(bench.root)
        assert proxy.counters.refused >= 1
        assert len(session.events) == 0  # a failed attempt is no event
        proxy.release()
        await bench.seen(session, SessionEventKind.CONNECTED)
        assert (await session.get(bench.root)).value.data == b""

    bench.run(story)


def test_close_while_disconnected_leaves_the_session_to_expire(bench: Any) -> None:
    async def story() -> None:
        proxy = bench.proxy()
        session, other = await bench.connected(proxy.connect_string, timeout_ms=1000), await bench.connected()
        await session.create(f"{bench.root}/e", b"", ephemeral=True)
        gone = (await other.exists(f"{bench.root}/e", watch=True)).watch
        proxy.hold()
        proxy.cut()
        await bench.seen(session, SessionEventKind.DISCONNECTED)
        queued = session.get(bench.root)
        await session.close()
        with pytest.raises(errors.SessionClosed):
            await queued
        assert (await other.exists(f"{bench.root}/e")).value is not None
        assert (await gone).kind is WatchKind.DELETED

    bench.run(story)


def test_close_ends_with_the_connection(bench: Any) -> None:
    async def story() -> None:
        proxy = bench.proxy()
        session = await bench.connected(proxy.connect_string)
        pending, closed = session.get(bench.root), session.close()
        proxy.cut()
        await closed
        assert session.state is SessionState.CLOSED
        with pytest.raises(errors.ConnectionLoss):
            await pending

    bench.run(story)


# -- expiry -------------------------------------------------------------------------------------


def test_expiry(bench: Any) -> None:
    async def story() -> None:
        session = await bench.connected()
        await session.create(f"{bench.root}/e", b"", ephemeral=True)
        watch = (await session.get(bench.root, watch=True)).watch
        expire_at_the_server(session, bench.server.connect_string)
        await bench.seen(session, SessionEventKind.DISCONNECTED)
        queued = session.get(bench.root)
        await bench.seen(session, SessionEventKind.EXPIRED)
        assert session.state is SessionState.EXPIRED
        for future in (queued, watch, session.get(bench.root)):
            with pytest.raises(errors.SessionExpired):
                await future
        await session.close()  # nothing to close
        assert session.state is SessionState.EXPIRED
        fresh = await bench.connected()
        assert (await fresh.exists(f"{bench.root}/e")).value is None

    bench.run(story)


def test_an_idle_session_lives_on_its_pings(bench: Any) -> None:
    """More than two session timeouts of silence: without pings the server would have closed it."""

    async def story() -> None:
        proxy = bench.proxy()
        session = await bench.connected(proxy.connect_string, timeout_ms=2000)
        before = proxy.counters.bytes_to_server
        await bench.live.kernel.sleep(4_500_000)
        pings, rest = divmod(proxy.counters.bytes_to_server - before, 12)
        assert (session.state, len(session.events), rest) == (SessionState.CONNECTED, 0, 0)
        assert 5 <= pings <= 7  # one each two thirds of a second

    bench.run(story)


def test_a_client_that_was_stopped_loses_what_came_meanwhile(bench: Any) -> None:
    """Stopped for more than the read timeout of 2 s, as by SIGSTOP: the answer was in the socket's buffer."""

    async def story() -> None:
        session = await bench.connected(timeout_ms=3000)
        before = session.session_id
        watch = (await session.children(bench.root, watch=True)).watch
        asked = session.create(f"{bench.root}/made", b"")
        bench.live.loop.call_soon(time.sleep, 2.1)  # when the request is sent, and before its answer is read
        with pytest.raises(errors.ConnectionLoss):
            await asked
        assert "nothing heard for 2." in session.last_loss
        assert not watch.done
        await reconnected(bench, session)
        assert session.session_id == before
        assert (await session.exists(f"{bench.root}/made")).value is not None
        assert watch.result().kind is WatchKind.CHILD

    bench.run(story)


# -- servers that stop --------------------------------------------------------------------------


def test_a_server_that_falls_silent(live: Any, bench: Any, tmp_path: Path) -> None:
    """The read timeout (two thirds of the session's) ends a connection to a paused server."""
    with EmbeddedZooKeeper.start(tmp_path) as server:

        async def story() -> None:
            session = await bench.connected(server.connect_string, timeout_ms=4000)
            before = session.session_id
            began_us = live.kernel.now_us()
            server.pause()
            await bench.seen(session, SessionEventKind.DISCONNECTED)
            assert "nothing heard for 2." in session.last_loss
            # what was heard last may be the answer to a ping, a third of the timeout before
            assert 1_300_000 < live.kernel.now_us() - began_us < 4_000_000
            server.resume()
            await bench.seen(session, SessionEventKind.CONNECTED)
            assert session.session_id == before
            await session.close()

        bench.run(story)


def test_a_server_that_is_killed_and_comes_back(bench: Any, tmp_path: Path) -> None:
    """The session outlives the server; its transaction log goes on in a second file."""
    first = EmbeddedZooKeeper.start(tmp_path)
    log = TransactionLog(first.transaction_dir)

    async def story() -> None:
        session = await bench.connected(first.connect_string, timeout_ms=8000)
        await session.create("/e", b"", ephemeral=True)
        assert [txn.path for txn in log.poll()] == ["", "/e"]
        first.kill()
        await bench.seen(session, SessionEventKind.DISCONNECTED)
        with pytest.raises(errors.ConnectionLoss):
            await session.get("/e")
        assert "cannot connect" in session.last_loss
        with EmbeddedZooKeeper.start(tmp_path, port=first.port):
            await bench.seen(session, SessionEventKind.CONNECTED)
            assert (await session.exists("/e")).value.ephemeral_owner == session.session_id
            await session.set("/e", b"x")
            assert [(txn.path, txn.data) for txn in log.poll()] == [("/e", b"x")]
            await session.close()

    bench.run(story)
    assert len(list((tmp_path / "version-2").glob("log.*"))) == 2
    assert [txn.kind for txn in log.poll()] == [TransactionKind.SESSION_CLOSED]
    assert [txn.zxid for txn in read(tmp_path)] == [1, 2, 3, 4]
