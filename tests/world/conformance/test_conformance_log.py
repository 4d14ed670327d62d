"""The transaction log (the simulator's tap) against what clients saw."""

from __future__ import annotations

from typing import Any

import pytest
from conformance_harness import SHORT_TIMEOUT_MS, Harness

from rebalance_lab.history.transactions import Transaction, TransactionKind
from rebalance_lab.kernel import Future
from rebalance_lab.world.errors import ZooKeeperError
from rebalance_lab.world.ports import Reply, ZooKeeper

Seen = tuple[TransactionKind, int, str, bytes, bool, int, int]


def as_seen(txn: Transaction) -> Seen:
    """A logged transaction in a client's words: version of a set, code of an error."""
    number = {TransactionKind.ERROR: txn.code, TransactionKind.SET: txn.version}.get(txn.kind, -1)
    return (txn.kind, txn.session_id, txn.path, txn.data, txn.ephemeral, number, txn.zxid)


class Client:
    """A session that notes each of its writes as the log should hold it."""

    def __init__(self, session: ZooKeeper, root: str, saw: list[Seen]) -> None:
        self.session = session
        self.id = session.session_id
        self._root = root
        self._saw = saw

    async def create(self, name: str, data: bytes = b"", **flags: bool) -> None:
        ephemeral = flags.get("ephemeral", False)
        reply = await self._refusable(self.session.create(f"{self._root}/{name}", data, **flags))
        if reply is not None:
            self._saw.append((TransactionKind.CREATE, self.id, reply.value, data, ephemeral, -1, reply.zxid))

    async def set(self, name: str, data: bytes, **flags: int) -> None:
        path = f"{self._root}/{name}"
        reply = await self._refusable(self.session.set(path, data, **flags))
        if reply is not None:
            self._saw.append((TransactionKind.SET, self.id, path, data, False, reply.value.version, reply.zxid))

    async def delete(self, name: str, **flags: int) -> None:
        path = f"{self._root}/{name}"
        reply = await self._refusable(self.session.delete(path, **flags))
        if reply is not None:
            self._saw.append((TransactionKind.DELETE, self.id, path, b"", False, -1, reply.zxid))

    async def _refusable(self, future: Future[Reply[Any]]) -> Reply[Any] | None:
        try:
            return await future
        except ZooKeeperError as error:
            self._saw.append((TransactionKind.ERROR, self.id, "", b"", False, error.code, error.zxid))
            return None


def test_the_log_is_what_clients_saw(conform):
    """Every write that was answered is in the log once, with its session, path and zxid; every
    refused one is there as an error; reads are not."""

    async def story(h: Harness) -> None:
        saw: list[Seen] = []
        one, two = [Client(await h.connected(), h.root, saw) for _ in range(2)]
        await one.create("a", b"1")
        await two.create("a", b"2")
        await two.create("e", b"3", ephemeral=True)
        await one.create("s-", b"", sequence=True)
        await two.create("s-", b"4", sequence=True, ephemeral=True)
        await one.set("a", b"5")
        await two.set("a", b"6", version=1)
        await one.set("a", b"7", version=1)
        await one.create("e/child")
        await one.create("a/child", b"8")
        await two.delete("a")
        await two.delete("a/child")
        await one.delete("missing")
        await one.set("missing", b"")
        await one.delete("a", version=0)
        await one.delete("a", version=2)
        await one.session.get(h.root)
        await one.session.exists(f"{h.root}/missing", watch=True)
        assert len(saw) == 16

        logged = [txn for txn in h.transactions() if txn.session_id in {one.id, two.id}]
        writes = [txn for txn in logged if txn.kind is not TransactionKind.SESSION_OPENED]
        assert [as_seen(txn) for txn in writes] == saw

    conform(story)


def test_sessions_open_and_close_in_the_log(conform):
    async def story(h: Harness) -> None:
        closed = await h.connected(3333)
        await closed.create(f"{h.root}/e", b"", ephemeral=True)
        await closed.create(f"{h.root}/f", b"", ephemeral=True)
        await closed.create(f"{h.root}/gone", b"", ephemeral=True)
        await closed.delete(f"{h.root}/gone")
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
            (TransactionKind.CREATE, session_id, f"{h.root}/f", 0),
            (TransactionKind.CREATE, session_id, f"{h.root}/gone", 0),
            (TransactionKind.DELETE, session_id, f"{h.root}/gone", 0),
            (TransactionKind.SESSION_CLOSED, session_id, "", 0),
            (TransactionKind.SESSION_OPENED, expired.session_id, "", SHORT_TIMEOUT_MS),
            (TransactionKind.SESSION_CLOSED, expired.session_id, "", 0),
        ]
        lists = [txn.removed for txn in logged if txn.kind is TransactionKind.SESSION_CLOSED]
        assert [sorted(each or ()) for each in lists] == [[f"{h.root}/e", f"{h.root}/f"], []]
        assert None not in lists

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
