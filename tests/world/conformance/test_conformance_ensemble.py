"""Several servers: what each of them shows, sessions that move, followers that lag behind."""

from __future__ import annotations

import pytest
from conformance_harness import EnsembleHarness

from rebalance_lab.history.transactions import TransactionKind
from rebalance_lab.world.errors import ConnectionLoss, MultiRefused, NodeExists
from rebalance_lab.world.ports import (
    ChildrenRead,
    Create,
    GetRead,
    SessionEventKind,
    SessionState,
    WatchKind,
    ZooKeeper,
)

#: Longer than any story: what lags so much comes only when the lag is taken away.
FOR_EVER_MS = 120_000


async def caught_up(h: EnsembleHarness, session: ZooKeeper, zxid: int) -> None:
    """The session's server has applied all up to `zxid`."""

    async def has() -> bool:
        return (await session.exists(h.root)).zxid >= zxid

    await h.until(has, f"zxid {zxid:#x} at the server of {session!r}")


# -- one tree -----------------------------------------------------------------------------------


def test_every_server_takes_writes_and_shows_them(conform_ensemble):
    async def story(h: EnsembleHarness) -> None:
        sessions = [await h.connected(servers=(name,)) for name in h.servers]
        zxids = []
        for name, session in zip(h.servers, sessions, strict=True):
            zxids.append((await session.create(f"{h.root}/{name}", name.encode(), ephemeral=True)).zxid)
            assert (await session.get(f"{h.root}/{name}")).value.data == name.encode(), "its own writes at once"
        assert zxids == sorted(set(zxids))
        for session in sessions:
            await caught_up(h, session, zxids[-1])
            assert (await session.children(h.root)).value.names == h.servers
        stats = [[(await session.exists(f"{h.root}/{name}")).value for name in h.servers] for session in sessions]
        assert stats[0] == stats[1] == stats[2]
        assert [stat.czxid for stat in stats[0]] == zxids
        assert [stat.ephemeral_owner for stat in stats[0]] == [session.session_id for session in sessions]

    conform_ensemble(story)


def test_writes_at_different_servers_come_in_one_order(conform_ensemble):
    """Of those who create the same znode one succeeds, wherever they are connected."""

    async def story(h: EnsembleHarness) -> None:
        sessions = [await h.connected(servers=(name,)) for name in h.servers]
        for turn in range(5):
            path = f"{h.root}/{turn}"
            asked = [session.create(path, session.session_id.to_bytes(8, "big", signed=True)) for session in sessions]
            won = []
            for session, future in zip(sessions, asked, strict=True):
                try:
                    await future
                    won.append(session.session_id.to_bytes(8, "big", signed=True))
                except NodeExists as error:
                    await caught_up(h, session, error.zxid)
            assert len(won) == 1
            assert [(await session.get(path)).value.data for session in sessions] == won * 3
        logged = [txn for txn in h.transactions() if txn.session_id in {each.session_id for each in sessions}]
        writes = [txn.kind for txn in logged if txn.kind is not TransactionKind.SESSION_OPENED]
        assert writes == [TransactionKind.CREATE, TransactionKind.ERROR, TransactionKind.ERROR] * 5
        zxids = [txn.zxid for txn in h.transactions()]
        assert zxids == sorted(set(zxids))

    conform_ensemble(story)


def test_watches_fire_at_every_server(conform_ensemble):
    async def story(h: EnsembleHarness) -> None:
        leader, follower, other = await h.roles()
        for at, by in ((leader, follower), (follower, leader), (follower, other), (follower, follower)):
            watcher, writer = await h.connected(servers=(at,)), await h.connected(servers=(by,))
            path = f"{h.root}/{at}-{by}"
            watch = (await watcher.exists(path, watch=True)).watch
            created = await writer.create(path, b"")
            event = await watch
            assert (event.kind, event.path) == (WatchKind.CREATED, path)
            assert (await watcher.exists(path)).value.czxid == created.zxid, "who is told of it can see it"

    conform_ensemble(story)


def test_a_multi_at_a_follower_is_one_transaction_everywhere(conform_ensemble):
    async def story(h: EnsembleHarness) -> None:
        leader, follower, other = await h.roles()
        writer, reader = await h.connected(servers=(follower,)), await h.connected(servers=(other,))
        pair = [f"{h.root}/a", f"{h.root}/b"]
        watches = [(await reader.exists(path, watch=True)).watch for path in pair]
        done = await writer.multi([Create(path, b"") for path in pair])
        for watch in watches:
            assert (await watch).kind is WatchKind.CREATED
        assert (await reader.multi_read([ChildrenRead(h.root)])).value == (("a", "b"),)
        assert {(await reader.exists(path)).value.czxid for path in pair} == {done.zxid}
        with pytest.raises(MultiRefused) as caught:
            await writer.multi([Create(f"{h.root}/c", b""), Create(pair[0], b"")])
        assert (caught.value.index, type(caught.value.reason)) == (1, NodeExists)
        at_leader = await h.connected(servers=(leader,))
        assert (await at_leader.children(h.root)).value.names == ("a", "b")

    conform_ensemble(story)


# -- sessions move ------------------------------------------------------------------------------


def test_a_session_moves_with_its_ephemerals_and_watches(conform_ensemble):
    """What changed while it was away is told at the next server, and the rest stays armed."""

    async def story(h: EnsembleHarness) -> None:
        leader, follower, other = await h.roles()
        for servers in ((leader, follower), (follower, leader), (follower, other)):
            writer = await h.connected(servers=(leader,))
            session = await h.connected(servers=servers)
            before, base = session.session_id, f"{h.root}/{servers[0]}-{servers[1]}"
            await session.create(base, b"")
            await session.create(f"{base}/mine", b"", ephemeral=True)
            await session.create(f"{base}/changed", b"")
            changed = (await session.get(f"{base}/changed", watch=True)).watch
            child = (await session.children(base, watch=True)).watch
            missing = (await session.exists(f"{base}/new", watch=True)).watch
            await h.away(session)
            written = await writer.set(f"{base}/changed", b"1")
            for name in servers:  # or the next server might not know of it yet when it is asked
                reader = await h.connected(servers=(name,))
                await caught_up(h, reader, written.zxid)
            await h.back(session)
            assert h.at(session) == servers[1]
            assert session.session_id == before
            assert (await changed).kind is WatchKind.CHANGED
            await session.exists(base)
            assert not child.done
            assert not missing.done
            assert (await writer.exists(f"{base}/mine")).value.ephemeral_owner == before
            await writer.create(f"{base}/new", b"")
            assert [(await each).kind for each in (missing, child)] == [WatchKind.CREATED, WatchKind.CHILD]
            with pytest.raises(NodeExists):
                await session.create(f"{base}/mine", b"", ephemeral=True)
            await session.close()
            beside = await h.connected(servers=servers[1:])  # the server that has closed it
            closed = await beside.exists(f"{base}/mine")
            assert closed.value is None
            await caught_up(h, writer, closed.zxid)
            assert (await writer.exists(f"{base}/mine")).value is None

    conform_ensemble(story)


def test_a_reply_lost_before_the_move(conform_ensemble):
    """Applied by the first server's leader; seen by the session where it is connected next."""

    async def story(h: EnsembleHarness) -> None:
        _, follower, other = await h.roles()
        session = await h.connected(servers=(follower, other))
        await session.exists(h.root)
        h.lose_next_reply(session)
        with pytest.raises(ConnectionLoss):
            await session.create(f"{h.root}/lost", b"", ephemeral=True)
        await h.expect(session, SessionEventKind.DISCONNECTED)
        await h.expect(session, SessionEventKind.CONNECTED)
        with pytest.raises(NodeExists):
            await session.create(f"{h.root}/lost", b"", ephemeral=True)
        assert (await session.exists(f"{h.root}/lost")).value.ephemeral_owner == session.session_id
        made = [txn for txn in h.transactions() if txn.path == f"{h.root}/lost"]
        assert [txn.kind for txn in made] == [TransactionKind.CREATE]

    conform_ensemble(story)


def test_a_session_expired_at_one_server_is_expired_at_all(conform_ensemble):
    async def story(h: EnsembleHarness) -> None:
        _, follower, other = await h.roles()
        observer = await h.connected(servers=(other,))
        session = await h.connected(servers=(follower, other))
        await session.create(f"{h.root}/e", b"", ephemeral=True)

        async def there() -> bool:
            return (await observer.exists(f"{h.root}/e")).value is not None

        await h.until(there, "the znode at the other server")
        watch = (await observer.exists(f"{h.root}/e", watch=True)).watch
        h.expire(session)
        assert (await watch).kind is WatchKind.DELETED
        await h.expect(session, SessionEventKind.DISCONNECTED)
        await h.expect(session, SessionEventKind.EXPIRED)

    conform_ensemble(story)


# -- a follower that lags -----------------------------------------------------------------------


def test_a_lagging_follower_shows_the_past_to_sessions_that_notice_nothing(conform_ensemble):
    async def story(h: EnsembleHarness) -> None:
        leader, slow, other = await h.roles()
        writer, reader = await h.connected(servers=(leader,)), await h.connected(1_000, servers=(slow,))
        await writer.create(f"{h.root}/n", b"old")
        at_other = await h.connected(servers=(other,))
        await caught_up(h, reader, (await writer.exists(h.root)).zxid)
        h.lag(slow, FOR_EVER_MS)
        watches = {
            "n": (await reader.get(f"{h.root}/n", watch=True)).watch,
            "children": (await reader.children(h.root, watch=True)).watch,
        }
        await writer.set(f"{h.root}/n", b"new")
        last = await writer.create(f"{h.root}/m", b"")
        await caught_up(h, at_other, last.zxid)
        until_us = h.kernel.now_us() + 1_600_000  # longer than the reader's session: it is kept alive
        while h.kernel.now_us() < until_us:
            found = await reader.multi_read([GetRead(f"{h.root}/n"), ChildrenRead(h.root), GetRead(f"{h.root}/m")])
            node, names, _ = found.value
            assert (node.data, names) == (b"old", ("n",))
            assert found.zxid < last.zxid
            await h.sleep_ms(100)
        assert (await at_other.get(f"{h.root}/n")).value.data == b"new"
        assert reader.state is SessionState.CONNECTED
        assert len(reader.events) == 0
        assert not any(watch.done for watch in watches.values())
        h.lag(slow, 0)
        assert (await watches["n"]).kind is WatchKind.CHANGED
        assert (await watches["children"]).kind is WatchKind.CHILD
        await caught_up(h, reader, last.zxid)
        assert (await reader.get(f"{h.root}/n")).value.data == b"new"
        assert (await reader.children(h.root)).value.names == ("m", "n")
        assert len(reader.events) == 0

    conform_ensemble(story)


def test_a_write_at_a_lagging_follower_is_done_at_once_and_answered_late(conform_ensemble):
    async def story(h: EnsembleHarness) -> None:
        leader, slow, _ = await h.roles()
        observer, session = await h.connected(servers=(leader,)), await h.connected(servers=(slow,))
        h.lag(slow, FOR_EVER_MS)
        appears = (await observer.exists(f"{h.root}/n", watch=True)).watch
        pending = session.create(f"{h.root}/n", b"", ephemeral=True)
        behind = session.exists(f"{h.root}/n")
        await appears
        assert (await observer.exists(f"{h.root}/n")).value.ephemeral_owner == session.session_id
        assert not pending.done
        assert not behind.done, "what is asked after a write is answered after it"
        h.lag(slow, 0)
        created = await pending
        assert (await behind).value.czxid == created.zxid

    conform_ensemble(story)


def test_a_new_session_at_a_lagging_follower_waits_for_it(conform_ensemble):
    async def story(h: EnsembleHarness) -> None:
        leader, slow, _ = await h.roles()
        h.lag(slow, FOR_EVER_MS)
        session = h.open(servers=(slow,))
        observer = await h.connected(servers=(leader,))
        for _ in range(20):  # round trips that would do
            await observer.exists(h.root)
        await h.sleep_ms(200)
        assert session.state is SessionState.CONNECTING
        h.lag(slow, 0)
        await h.expect(session, SessionEventKind.CONNECTED)
        assert (await session.exists(h.root)).value is not None

    conform_ensemble(story)


def test_a_follower_behind_what_a_session_has_seen_turns_it_away(conform_ensemble):
    """A session never sees time go back: it goes on to the next server."""

    async def story(h: EnsembleHarness) -> None:
        leader, slow, _ = await h.roles()
        session = await h.connected(servers=(leader, slow))
        before = session.session_id
        h.lag(slow, FOR_EVER_MS)
        written = await session.create(f"{h.root}/n", b"")
        await h.break_connection(session)
        await h.expect(session, SessionEventKind.CONNECTED)
        assert h.at(session) == leader
        assert session.session_id == before
        assert (await session.exists(f"{h.root}/n")).value.czxid == written.zxid
        h.lag(slow, 0)
        probe = await h.connected(servers=(slow,))
        await caught_up(h, probe, written.zxid)
        await h.break_connection(session)
        await h.expect(session, SessionEventKind.CONNECTED)
        assert h.at(session) == slow

    conform_ensemble(story)


def test_a_session_may_move_to_a_lagging_follower_that_knows_all_it_has_seen(conform_ensemble):
    async def story(h: EnsembleHarness) -> None:
        leader, slow, _ = await h.roles()
        session, writer = await h.connected(servers=(leader, slow)), await h.connected(servers=(leader,))
        probe = await h.connected(servers=(slow,))
        await caught_up(h, probe, (await session.exists(h.root)).zxid)
        before = session.session_id
        h.lag(slow, FOR_EVER_MS)
        await writer.create(f"{h.root}/n", b"")
        await h.break_connection(session)
        await h.expect(session, SessionEventKind.CONNECTED)
        assert (h.at(session), session.session_id) == (slow, before)
        assert (await session.children(h.root)).value.names == ()
        h.lag(slow, 0)

    conform_ensemble(story)
