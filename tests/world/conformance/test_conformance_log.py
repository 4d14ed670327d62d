"""The transaction log (the simulator's tap) against what clients saw."""

from __future__ import annotations

import pytest
from conformance_harness import SHORT_TIMEOUT_MS, Harness

from rebalance_lab.history.transactions import TransactionKind
from rebalance_lab.world.errors import ZooKeeperError
from rebalance_lab.world.ports import ZooKeeper


def test_the_log_is_what_clients_saw(conform):
    """Every write that was answered is in the log once, with its session, path and zxid; every
    refused one is there as an error; reads are not."""

    async def story(h: Harness) -> None:
        one, two = await h.connected(), await h.connected()
        saw: list[tuple[TransactionKind, int, str, bytes, bool, int, int]] = []

        async def wrote(session: ZooKeeper, operation: str, name: str, data: bytes = b"", **flags: object) -> None:
            path = f"{h.root}/{name}"
            version = -1
            try:
                if operation == "create":
                    reply = await session.create(path, data, **flags)
                    path = reply.value
                    kind = TransactionKind.CREATE
                elif operation == "set":
                    reply = await session.set(path, data, **flags)
                    version = reply.value.version
                    kind = TransactionKind.SET
                else:
                    reply = await session.delete(path, **flags)
                    kind = TransactionKind.DELETE
            except ZooKeeperError as error:
                saw.append((TransactionKind.ERROR, session.session_id, "", b"", False, error.code, error.zxid))
            else:
                saw.append((kind, session.session_id, path, data, bool(flags.get("ephemeral")), version, reply.zxid))

        await wrote(one, "create", "a", b"1")
        await wrote(two, "create", "a", b"2")
        await wrote(two, "create", "e", b"3", ephemeral=True)
        await wrote(one, "create", "s-", b"", sequence=True)
        await wrote(two, "create", "s-", b"4", sequence=True, ephemeral=True)
        await wrote(one, "set", "a", b"5")
        await wrote(two, "set", "a", b"6", version=1)
        await wrote(one, "set", "a", b"7", version=1)
        await wrote(one, "create", "e/child")
        await wrote(one, "create", "a/child", b"8")
        await wrote(two, "delete", "a")
        await wrote(two, "delete", "a/child")
        await wrote(one, "delete", "missing")
        await wrote(one, "set", "missing", b"")
        await wrote(one, "delete", "a", version=0)
        await wrote(one, "delete", "a", version=2)
        await one.get(h.root)
        await one.exists(f"{h.root}/missing", watch=True)

        sessions = (one.session_id, two.session_id)
        logged = [txn for txn in h.transactions() if txn.session_id in sessions]
        writes = [txn for txn in logged if txn.kind is not TransactionKind.SESSION_OPENED]
        assert [
            (
                txn.kind,
                txn.session_id,
                txn.path,
                txn.data,
                txn.ephemeral,
                txn.code
                if txn.kind is TransactionKind.ERROR
                else txn.version
                if txn.kind is TransactionKind.SET
                else -1,
                txn.zxid,
            )
            for txn in writes
        ] == saw

    conform(story)


def test_sessions_open_and_close_in_the_log(conform):
    async def story(h: Harness) -> None:
        closed = await h.connected(3333)
        await closed.create(f"{h.root}/e", b"", ephemeral=True)
        session_id = closed.session_id
        await closed.close()
        expired = await h.connected(SHORT_TIMEOUT_MS // 2)
        h.expire(expired)
        observer = await h.connected()
        assert (await observer.children(h.root)).value.names == ()
        logged = [txn for txn in h.transactions() if txn.session_id in (session_id, expired.session_id)]
        assert [(txn.kind, txn.session_id, txn.path, txn.timeout_ms) for txn in logged] == [
            (TransactionKind.SESSION_OPENED, session_id, "", 3333),
            (TransactionKind.CREATE, session_id, f"{h.root}/e", 0),
            (TransactionKind.SESSION_CLOSED, session_id, "", 0),
            (TransactionKind.SESSION_OPENED, expired.session_id, "", SHORT_TIMEOUT_MS),
            (TransactionKind.SESSION_CLOSED, expired.session_id, "", 0),
        ]

    conform(story)


def test_zxids_in_the_log_grow_one_by_one(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        for n in range(5):
            await session.create(f"{h.root}/{n}", b"")
            with pytest.raises(ZooKeeperError):
                await session.create(f"{h.root}/{n}", b"")
        zxids = [txn.zxid for txn in h.transactions()]
        assert zxids == list(range(zxids[0], zxids[0] + len(zxids)))
        assert len(zxids) >= 11

    conform(story)


def test_cxids_number_the_requests_of_a_session(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        for n in range(3):
            await session.create(f"{h.root}/{n}", b"")
            await session.get(h.root)
        cxids = [txn.cxid for txn in h.transactions() if txn.session_id == session.session_id and txn.path]
        assert cxids == [cxids[0], cxids[0] + 2, cxids[0] + 4], "reads have numbers too"

    conform(story)


def test_the_log_has_the_servers_clock(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        path = f"{h.root}/n"
        await session.create(path, b"")
        await h.sleep_ms(5)
        stat = (await session.set(path, b"1")).value
        times = {txn.zxid: txn.wall_ms for txn in h.transactions()}
        assert (times[stat.czxid], times[stat.mzxid]) == (stat.ctime_ms, stat.mtime_ms)
        assert 5 <= stat.mtime_ms - stat.ctime_ms < 5_000

    conform(story)
