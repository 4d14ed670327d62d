"""Multi, multi-read and long requests on a real server; and servers before ZooKeeper 3.6, scripted."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from scripted_server import STAT, WELCOME, ScriptedServer, frame, reply

from rebalance_lab.history.transactions import TransactionKind
from rebalance_lab.world import errors
from rebalance_lab.world.live.session import LiveZooKeeperFactory
from rebalance_lab.world.live.transaction_log import read
from rebalance_lab.world.ports import (
    Check,
    ChildrenRead,
    Create,
    Delete,
    GetRead,
    Node,
    SessionEventKind,
    SessionState,
    Set,
    Stat,
)

# -- writes -------------------------------------------------------------------------------------


def test_a_multi_is_done_as_one_transaction(bench: Any) -> None:
    root = bench.root

    async def story() -> tuple[int, int]:
        session = await bench.connected()
        await session.create(f"{root}/old", b"")
        reply = await session.multi(
            [
                Create(f"{root}/a", b"1"),
                Create(f"{root}/s-", b"", ephemeral=True, sequence=True),
                Set(f"{root}/a", b"2", version=0),
                Check(f"{root}/a", 1),
                Delete(f"{root}/old"),
            ]
        )
        created, ephemeral, stat, checked, deleted = reply.value
        assert (created, ephemeral, checked, deleted) == (f"{root}/a", f"{root}/s-0000000002", None, None)
        assert isinstance(stat, Stat)
        assert (stat.version, stat.czxid, stat.mzxid) == (1, reply.zxid, reply.zxid)
        assert (await session.children(root)).value.names == ("a", "s-0000000002")
        return reply.zxid, session.session_id

    zxid, session_id = bench.run(story)
    logged = [txn for txn in read(bench.server.transaction_dir) if txn.zxid == zxid]
    assert [txn.kind.name.lower() for txn in logged] == ["create", "create", "set", "check", "delete"]
    assert {txn.session_id for txn in logged} == {session_id}


def test_a_multi_that_is_refused_does_nothing(bench: Any) -> None:
    root = bench.root

    async def story() -> int:
        session = await bench.connected()
        with pytest.raises(errors.MultiRefused) as caught:
            await session.multi([Create(f"{root}/a", b""), Set(root, b"", version=7), Delete(f"{root}/none")])
        refused = caught.value
        assert (refused.index, refused.path, refused.session_id) == (1, root, session.session_id)
        assert isinstance(refused.reason, errors.BadVersion)
        assert refused.zxid > 0
        assert (await session.children(root)).value.names == ()
        with pytest.raises(errors.MultiRefused, match=r"refused at its operation 1 \(BadArguments\)"):
            await session.multi([Create(f"{root}/a", b""), Delete("")])
        assert (await session.multi([])).value == ()
        return refused.zxid

    zxid = bench.run(story)
    logged = [txn.kind for txn in read(bench.server.transaction_dir) if txn.zxid == zxid]
    assert logged == [TransactionKind.ERROR] * 3


# -- reads --------------------------------------------------------------------------------------


def test_each_read_has_its_own_result(bench: Any) -> None:
    root = bench.root

    async def story() -> None:
        session = await bench.connected()
        await session.create(f"{root}/b", b"data")
        await session.create(f"{root}/a", b"")
        reads = [GetRead(f"{root}/b"), GetRead(f"{root}/none"), ChildrenRead(root), GetRead(""), ChildrenRead("/no")]
        reply = await session.multi_read(reads)
        node, missing, names, empty, gone = reply.value
        assert node == (await session.get(f"{root}/b")).value
        assert names == ("a", "b")
        assert reply.zxid == node.stat.czxid + 1
        for error, kind, operation, path in (
            (missing, errors.NoNode, "get", f"{root}/none"),
            (empty, errors.BadArguments, "get", ""),
            (gone, errors.NoNode, "children", "/no"),
        ):
            assert type(error) is kind
            assert (error.operation, error.path, error.session_id) == (operation, path, session.session_id)
        assert (await session.multi_read([])).value == ()

    bench.run(story)


def test_more_reads_than_one_request_holds(bench: Any) -> None:
    """One future, results in order; ours is a reader of 2,500 znodes in three requests."""
    root = bench.root

    async def story() -> None:
        session = await bench.connected()
        writes = [
            session.multi([Create(f"{root}/{n}", str(n).encode()) for n in range(at, at + 500)]) for at in (0, 500)
        ]
        for write in writes:
            await write
        numbers = [n % 1100 for n in range(2500)]
        before = session._xid
        reply = await session.multi_read([GetRead(f"{root}/{n}") for n in numbers])
        assert session._xid == before + 3
        told = [result.data if isinstance(result, Node) else type(result) for result in reply.value]
        assert told == [str(n).encode() if n < 1000 else errors.NoNode for n in numbers]

    bench.run(story)


def test_a_multi_read_whose_connection_is_lost(bench: Any) -> None:
    async def story() -> None:
        proxy = bench.proxy()
        session = await bench.connected(proxy.connect_string)
        pending = session.multi_read([GetRead(bench.root)] * 1500)
        proxy.cut()
        with pytest.raises(errors.ConnectionLoss):
            await pending
        await session.close()
        with pytest.raises(errors.SessionClosed):
            await session.multi_read([GetRead(bench.root)])

    bench.run(story)


# -- long requests ------------------------------------------------------------------------------


def test_the_longest_request_and_one_byte_more(bench: Any) -> None:
    """The server takes the first and would break the connection for the second: not sent."""

    async def story() -> None:
        session = await bench.connected()
        room = 0xFFFFF - 8 - 4 - len(bench.root) - 4 - 4
        assert (await session.set(bench.root, b"x" * room)).value.data_length == room
        with pytest.raises(errors.RequestTooLarge, match=r"set of 1048576 bytes \(the server takes 1048575\)"):
            await session.set(bench.root, b"x" * (room + 1))
        with pytest.raises(errors.RequestTooLarge):
            await session.multi([Set(bench.root, b"x" * 600_000), Set(bench.root, b"x" * 600_000)])
        assert session.state is SessionState.CONNECTED
        assert (await session.get(bench.root)).value.data == b"x" * room

    bench.run(story)


# -- servers before 3.6 -------------------------------------------------------------------------


def old_server_says_no(xid: int) -> bytes:
    """What 3.4.14 sends for opcode 22, ahead of its turn; then it closes the connection."""
    return reply(xid, zxid=-1, code=-6) + struct.pack("!i", -1)


def test_an_old_server_fails_a_multi_read_by_name(
    live: Any, server: ScriptedServer, factory: LiveZooKeeperFactory
) -> None:
    """What else was in flight is lost with the connection; the session lives on."""
    server.scripts = [
        [frame(WELCOME), None, old_server_says_no(2)],
        [frame(WELCOME), reply(4, STAT)],
    ]

    async def story() -> None:
        async with live.kernel.timeout(20_000_000, "the test"):
            session = factory.open(server.connect_string, 4000)
            assert (await session.events.get()).kind is SessionEventKind.CONNECTED
            lost = session.exists("/e")
            refused = session.multi_read([GetRead("/a"), GetRead("")])
            behind = session.multi_read([GetRead("/b")])
            with pytest.raises(errors.Unimplemented, match=r"multi_read /a .*needs ZooKeeper 3\.6 or later"):
                await refused
            for each in (lost, behind):
                with pytest.raises(errors.ConnectionLoss):
                    await each
            assert isinstance((await session.exists("/e")).value, Stat)

    live.run(story())
    asked = [[struct.unpack_from("!ii", each) for each in conversation[1:]] for conversation in server.conversations]
    assert asked == [[(1, 3), (2, 22), (3, 22)], [(4, 3)]]
