"""multi: several writes in one transaction, or none of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from conformance_harness import Harness, also_kazoo

from rebalance_lab.history.transactions import TransactionKind
from rebalance_lab.world import errors
from rebalance_lab.world.errors import BadVersion, ConnectionLoss, MultiRefused, NodeExists, NoNode
from rebalance_lab.world.ports import (
    Check,
    Create,
    Delete,
    SessionEventKind,
    Set,
    Stat,
    WatchEvent,
    WatchKind,
    WriteOperation,
    ZooKeeper,
)


async def refused(session: ZooKeeper, operations: Sequence[WriteOperation]) -> MultiRefused:
    with pytest.raises(MultiRefused) as caught:
        await session.multi(operations)
    return caught.value


async def settled(session: ZooKeeper, h: Harness) -> None:
    await session.exists(h.root)


@also_kazoo
def test_all_are_done_and_each_has_its_result(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        await session.create(f"{h.root}/set", b"0")
        await session.create(f"{h.root}/delete", b"")
        reply = await session.multi(
            [
                Create(f"{h.root}/plain", b"1"),
                Create(f"{h.root}/s-", b"2", sequence=True),
                Create(f"{h.root}/e", b"3", ephemeral=True),
                Set(f"{h.root}/set", b"4"),
                Check(f"{h.root}/plain", 0),
                Delete(f"{h.root}/delete"),
            ]
        )
        plain, sequential, ephemeral, stat, checked, deleted = reply.value
        assert (plain, sequential, ephemeral) == tuple(f"{h.root}/{name}" for name in ("plain", "s-0000000003", "e"))
        assert isinstance(stat, Stat)
        assert (stat.version, stat.data_length) == (1, 1)
        assert (checked, deleted) == (None, None)
        assert (await session.children(h.root)).value.names == ("e", "plain", "s-0000000003", "set")
        assert (await session.get(f"{h.root}/set")).value.data == b"4"
        assert (await session.exists(f"{h.root}/e")).value.ephemeral_owner == session.session_id

    conform(story)


def test_it_is_one_transaction_with_one_zxid(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        before = (await session.create(f"{h.root}/n", b"")).zxid
        reply = await session.multi(
            [
                Create(f"{h.root}/a", b""),
                Set(f"{h.root}/n", b"1"),
                Create(f"{h.root}/a/b", b""),
                Check(f"{h.root}/a", 0),
            ]
        )
        after = (await session.create(f"{h.root}/later", b"")).zxid
        assert (before, after) == (reply.zxid - 1, reply.zxid + 1)
        a, b, n = [(await session.exists(f"{h.root}/{name}")).value for name in ("a", "a/b", "n")]
        assert (a.czxid, a.pzxid, b.czxid, n.mzxid) == (reply.zxid,) * 4
        assert a.ctime_ms == b.ctime_ms == n.mtime_ms
        assert n == reply.value[1]
        logged = [txn for txn in h.transactions() if txn.zxid == reply.zxid]
        assert [(txn.kind, txn.path) for txn in logged] == [
            (TransactionKind.CREATE, f"{h.root}/a"),
            (TransactionKind.SET, f"{h.root}/n"),
            (TransactionKind.CREATE, f"{h.root}/a/b"),
            (TransactionKind.CHECK, f"{h.root}/a"),
        ]
        assert {(txn.session_id, txn.cxid) for txn in logged} == {(session.session_id, logged[0].cxid)}

    conform(story)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("create", NodeExists),
        ("orphan", NoNode),
        ("set", BadVersion),
        ("check", BadVersion),
        ("delete", errors.NotEmpty),
        ("missing", NoNode),
        ("checked", NoNode),
        ("ephemeral", errors.NoChildrenForEphemerals),
        ("path", errors.BadArguments),
    ],
)
@also_kazoo
def test_one_that_is_refused_undoes_them_all(conform, name: str, reason: type[errors.ZooKeeperError]):
    async def story(h: Harness) -> None:
        session = await h.connected()
        for path in ("there", "there/child", "set", "gone"):
            await session.create(f"{h.root}/{path}", b"")
        await session.create(f"{h.root}/owned", b"", ephemeral=True)
        operations: dict[str, WriteOperation] = {
            "create": Create(f"{h.root}/there", b""),
            "orphan": Create(f"{h.root}/no/parent", b""),
            "set": Set(f"{h.root}/set", b"", version=7),
            "check": Check(f"{h.root}/set", 5),
            "delete": Delete(f"{h.root}/there"),
            "missing": Delete(f"{h.root}/missing"),
            "checked": Check(f"{h.root}/missing", 0),
            "ephemeral": Create(f"{h.root}/owned/child", b""),
            "path": Create(f"{h.root}/not\x01printable", b""),
        }
        operation = operations[name]
        before = [(await session.exists(f"{h.root}{path}")).value for path in ("", "/set", "/there", "/gone")]
        first: list[WriteOperation] = [
            Create(f"{h.root}/new", b""),
            Create(f"{h.root}/s-", b"", sequence=True),
            Set(f"{h.root}/set", b"1"),
            Delete(f"{h.root}/gone"),
        ]
        error = await refused(session, [*first, operation, Delete(f"{h.root}/never/looked/at")])
        assert error.index == len(first)
        assert type(error.reason) is reason
        assert error.path == error.reason.path == operation.path
        assert error.code == error.reason.code == reason.code
        assert [(await session.exists(f"{h.root}{path}")).value for path in ("", "/set", "/there", "/gone")] == before
        assert (await session.exists(f"{h.root}/new")).value is None
        created = await session.create(f"{h.root}/s-", b"", sequence=True)
        assert created.value == f"{h.root}/s-0000000004", "a sequence number was taken by what was undone"

    conform(story)


def test_a_refused_multi_takes_a_zxid_and_is_logged_as_errors(conform):
    """The log names each operation: undone (0), refused, or not looked at (-2)."""

    async def story(h: Harness) -> None:
        session = await h.connected()
        before = (await session.create(f"{h.root}/n", b"")).zxid
        operations: list[WriteOperation] = [
            Set(f"{h.root}/n", b"1"),
            Create(f"{h.root}/a", b""),
            Create(f"{h.root}/n", b""),
            Create(f"{h.root}/n", b""),
            Delete(f"{h.root}/n"),
        ]
        error = await refused(session, operations)
        assert error.zxid == error.reason.zxid == before + 1
        assert (await session.create(f"{h.root}/later", b"")).zxid == before + 2
        logged = [txn for txn in h.transactions() if txn.zxid == before + 1]
        assert [txn.code for txn in logged] == [0, 0, NodeExists.code, -2, -2]
        assert {(txn.kind, txn.session_id, txn.path) for txn in logged} == {
            (TransactionKind.ERROR, session.session_id, "")
        }

    conform(story)


def test_a_path_that_cannot_be_sent_is_refused_as_any_other(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        error = await refused(session, [Create(f"{h.root}/a", b""), Set("", b""), Delete("")])
        assert (error.index, type(error.reason), error.path) == (1, errors.BadArguments, "")
        assert (await session.children(h.root)).value.names == ()

    conform(story)


@also_kazoo
def test_each_operation_sees_what_those_before_it_did(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        n = f"{h.root}/n"
        await session.multi(
            [
                Create(n, b""),
                Create(f"{n}/child", b""),
                Set(n, b"1", version=0),
                Set(n, b"2", version=1),
                Check(n, 2),
                Delete(f"{n}/child", version=0),
                Delete(n, version=2),
                Create(n, b"3", ephemeral=True),
            ]
        )
        node = (await session.get(n)).value
        assert (node.data, node.stat.version, node.stat.ephemeral_owner) == (b"3", 0, session.session_id)
        error = await refused(session, [Delete(n), Check(n, 0)])
        assert (error.index, type(error.reason)) == (1, NoNode)
        error = await refused(session, [Create(f"{h.root}/twice", b""), Create(f"{h.root}/twice", b"")])
        assert (error.index, type(error.reason)) == (1, NodeExists)
        error = await refused(session, [Set(n, b"", version=0), Set(n, b"", version=0)])
        assert (error.index, type(error.reason)) == (1, BadVersion)
        assert (await session.get(n)).value == node

    conform(story)


@also_kazoo
def test_sequence_numbers_of_one_multi_follow_each_other(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        await session.create(f"{h.root}/first", b"")
        reply = await session.multi(
            [
                Create(f"{h.root}/s-", b"", sequence=True),
                Delete(f"{h.root}/first"),
                Create(f"{h.root}/s-", b"", sequence=True, ephemeral=True),
            ]
        )
        assert reply.value == (f"{h.root}/s-0000000001", None, f"{h.root}/s-0000000002")

    conform(story)


def test_watches_fire_in_the_order_of_the_operations_before_the_reply(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        for name in ("changed", "deleted"):
            await session.create(f"{h.root}/{name}", b"")
        told: list[tuple[str, str]] = []

        def note(watch) -> None:
            event: WatchEvent = watch.result()
            told.append((event.kind.name, event.path.removeprefix(h.root)))

        for name in ("changed", "deleted", "created"):
            (await session.exists(f"{h.root}/{name}", watch=True)).watch.on(note)
        (await session.children(h.root, watch=True)).watch.on(note)
        done = session.multi(
            [
                Check(f"{h.root}/changed", 0),
                Set(f"{h.root}/changed", b"1"),
                Create(f"{h.root}/created", b""),
                Delete(f"{h.root}/deleted"),
                Set(f"{h.root}/created", b"2"),
            ]
        )
        done.on(lambda _: told.append(("reply", "")))
        await done
        assert told == [
            ("CHANGED", "/changed"),
            ("CREATED", "/created"),
            ("CHILD", ""),
            ("DELETED", "/deleted"),
            ("reply", ""),
        ]

    conform(story)


def test_a_refused_multi_fires_nothing(conform):
    async def story(h: Harness) -> None:
        session, watcher = await h.connected(), await h.connected()
        await session.create(f"{h.root}/n", b"")
        watches = [
            (await watcher.get(f"{h.root}/n", watch=True)).watch,
            (await watcher.exists(f"{h.root}/new", watch=True)).watch,
            (await watcher.children(h.root, watch=True)).watch,
        ]
        await refused(session, [Set(f"{h.root}/n", b"1"), Create(f"{h.root}/new", b""), Delete(f"{h.root}/no")])
        await settled(watcher, h)
        assert not any(watch.done for watch in watches)
        await session.multi([Set(f"{h.root}/n", b"1"), Create(f"{h.root}/new", b"")])
        await settled(watcher, h)
        assert [watch.result().kind for watch in watches] == [WatchKind.CHANGED, WatchKind.CREATED, WatchKind.CHILD]

    conform(story)


def test_a_watcher_sees_all_of_it_or_nothing(conform):
    """Whoever reads between two transactions finds both znodes or none."""

    async def story(h: Harness) -> None:
        reader, writer = await h.connected(), await h.connected()
        pair = [f"{h.root}/a", f"{h.root}/b"]
        seen: list[tuple[str, ...]] = []
        for _ in range(5):
            made = writer.multi([Create(path, b"") for path in pair])
            gone = writer.multi([Delete(path) for path in pair])
            while not gone.done:
                seen.append((await reader.children(h.root)).value.names)
            await made
        assert set(seen) <= {(), ("a", "b")}

    conform(story)


def test_ephemerals_of_a_multi_go_with_their_session(conform):
    async def story(h: Harness) -> None:
        session, observer = await h.connected(), await h.connected()
        await session.multi([Create(f"{h.root}/e{n}", b"", ephemeral=True) for n in range(3)])
        await session.multi([Delete(f"{h.root}/e1"), Create(f"{h.root}/p", b"")])
        assert (await observer.children(h.root)).value.names == ("e0", "e2", "p")
        await session.close()
        assert (await observer.children(h.root)).value.names == ("p",)

    conform(story)


def test_nothing_at_all_to_do_is_allowed(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        before = (await session.create(f"{h.root}/n", b"")).zxid
        reply = await session.multi([])
        assert reply.value == ()
        assert reply.zxid == before + 1, "it is a transaction nevertheless"
        assert (await session.create(f"{h.root}/m", b"")).zxid == before + 2

    conform(story)


def test_a_reply_lost_after_the_multi_was_applied(conform):
    async def story(h: Harness) -> None:
        session, observer = await h.connected(), await h.connected()
        await session.exists(h.root)
        h.lose_next_reply(session)
        with pytest.raises(ConnectionLoss):
            await session.multi([Create(f"{h.root}/{name}", b"", ephemeral=True) for name in "ab"])
        assert (await observer.children(h.root)).value.names == ("a", "b")
        await h.expect(session, SessionEventKind.DISCONNECTED)
        await h.expect(session, SessionEventKind.CONNECTED)
        error = await refused(session, [Create(f"{h.root}/{name}", b"", ephemeral=True) for name in "cab"])
        assert (error.index, type(error.reason)) == (1, NodeExists)
        logged = [txn for txn in h.transactions() if txn.session_id == session.session_id and txn.path]
        assert [(txn.kind, txn.path) for txn in logged] == [
            (TransactionKind.CREATE, f"{h.root}/{name}") for name in "ab"
        ]

    conform(story)


def test_a_multi_waits_for_the_next_connection_or_fails_as_a_whole(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        await session.exists(h.root)
        pending = session.multi([Create(f"{h.root}/{name}", b"") for name in "ab"])
        h.hold(session)
        h.break_now(session)
        await h.expect(session, SessionEventKind.DISCONNECTED)
        with pytest.raises(ConnectionLoss) as caught:
            await pending
        assert not isinstance(caught.value, MultiRefused)
        queued = session.multi([Create(f"{h.root}/later", b"")])
        assert not queued.done
        h.release(session)
        assert (await queued).value == (f"{h.root}/later",)
        await h.expect(session, SessionEventKind.CONNECTED)
        names = (await session.children(h.root)).value.names
        assert names in {("a", "b", "later"), ("later",)}

    conform(story)
