"""Many operations in one request: all or none, one zxid, and each read for itself."""

from __future__ import annotations

from typing import Any

import pytest
from simulated_bench import Bench, outcome

from rebalance_lab.history.transactions import TransactionKind
from rebalance_lab.kernel import Future
from rebalance_lab.world.errors import (
    BadArguments,
    BadVersion,
    MultiRefused,
    NodeExists,
    NoNode,
    NotEmpty,
    RequestTooLarge,
    SessionClosed,
)
from rebalance_lab.world.ports import (
    Check,
    ChildrenRead,
    Create,
    Delete,
    GetRead,
    Node,
    Set,
    Stat,
    WatchKind,
    WriteOperation,
)
from rebalance_lab.world.zk.codec import REQUEST_LIMIT_BYTES, request_bytes
from rebalance_lab.world.zk.messages import Operation, Request


def test_a_multi_is_one_transaction_of_several_records() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1")
        await session.create("/a", b"1")
        reply = await session.multi(
            [
                Check("/a", 0),
                Set("/a", b"22"),
                Create("/a/e-", b"x", ephemeral=True, sequence=True),
                Delete("/a/e-0000000000"),
            ]
        )
        checked, stat, path, deleted = reply.value
        assert (checked, path, deleted) == (None, "/a/e-0000000000", None)
        assert isinstance(stat, Stat) and (stat.version, stat.data_length, stat.mzxid) == (1, 2, reply.zxid)
        assert reply.zxid == 3
        records = bench.transactions[2:]
        assert [(each.zxid, each.kind, each.path, each.version) for each in records] == [
            (3, TransactionKind.CHECK, "/a", 0),
            (3, TransactionKind.SET, "/a", 1),
            (3, TransactionKind.CREATE, "/a/e-0000000000", -1),
            (3, TransactionKind.DELETE, "/a/e-0000000000", -1),
        ]
        assert {each.cxid for each in records} == {2}
        assert (await session.children("/a")).value.names == ()

    bench.run(main())


def test_a_multi_of_nothing_takes_a_zxid_and_logs_nothing() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1")
        reply = await session.multi([])
        assert (reply.value, reply.zxid) == ((), 2)
        assert (await session.create("/a", b"")).zxid == 3
        assert bench.kinds() == [TransactionKind.SESSION_OPENED, TransactionKind.CREATE]

    bench.run(main())


REFUSED: list[tuple[list[WriteOperation], int, type[Exception]]] = [
    ([Create("/b", b""), Create("/a", b"")], 1, NodeExists),
    ([Set("/a", b"2"), Delete("/a/c"), Delete("/a"), Create("/a", b""), Check("/a", 7)], 4, BadVersion),
    ([Check("/no", -1), Create("/b", b"")], 0, NoNode),
    ([Create("/a/s-", b"", sequence=True), Delete("/a/c"), Delete("/a"), Delete("/no")], 2, NotEmpty),
    ([Delete("/a/c"), Set("/a", b"x"), Create("/no/b", b"")], 2, NoNode),
    ([Create("/b", b"", ephemeral=True), Create("bad", b"")], 1, BadArguments),
]


@pytest.mark.parametrize(("operations", "index", "reason"), REFUSED)
def test_a_refused_multi_changes_nothing_and_logs_errors(
    operations: list[WriteOperation], index: int, reason: type[Exception]
) -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1")
        await session.create("/a", b"old")
        await session.create("/a/c", b"", ephemeral=True)
        before = [(await session.get(path)).value for path in ("/", "/a", "/a/c")]
        names = [(await session.children(path)).value for path in ("/", "/a")]
        watch = (await session.get("/a", watch=True)).watch
        with pytest.raises(MultiRefused) as caught:
            await session.multi(operations)
        error = caught.value
        assert (error.index, type(error.reason), error.code) == (index, reason, error.reason.code)
        assert error.reason.path == operations[index].path and error.zxid == 4
        assert f"refused at its operation {index} ({reason.__name__})" in str(error)
        logged = bench.transactions[3:]
        assert {(each.zxid, each.kind) for each in logged} == {(4, TransactionKind.ERROR)}
        unseen = len(operations) - index - 1
        assert [each.code for each in logged] == [0] * index + [error.code] + [-2] * unseen  # as a real log has it
        assert [(await session.get(path)).value for path in ("/", "/a", "/a/c")] == before
        assert [(await session.children(path)).value for path in ("/", "/a")] == names
        assert watch is not None and not watch.done
        assert (await session.create("/a/s-", b"", sequence=True)).value == "/a/s-0000000001"  # no number is used up
        await session.close()
        assert bench.zookeeper.living_sessions == ()

    bench.run(main())


def test_watches_fire_after_the_whole_multi_and_before_its_reply() -> None:
    bench = Bench()

    async def main() -> None:
        writer, watcher = await bench.connected("m1"), await bench.connected("m2")
        await writer.create("/a", b"")
        data = (await watcher.get("/a", watch=True)).watch
        born = (await watcher.exists("/b", watch=True)).watch
        own = (await writer.exists("/b", watch=True)).watch
        assert data is not None and born is not None and own is not None
        reply = await writer.multi([Set("/a", b"1"), Create("/b", b"")])
        assert own.done  # told on its own connection before the answer
        assert (await data).kind is WatchKind.CHANGED
        seen = await watcher.get("/b")  # asked after the first event: the second change is there too
        assert seen.zxid == reply.zxid and (await born).kind is WatchKind.CREATED

    bench.run(main())


def test_each_read_of_a_multi_read_has_its_own_result() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1")
        await session.create("/a", b"x")
        for name in ("c", "b"):
            await session.create(f"/a/{name}", b"")
        reply = await session.multi_read([GetRead("/a"), GetRead("/no"), ChildrenRead("/a"), ChildrenRead("/no/no")])
        node, missing, names, neither = reply.value
        assert isinstance(node, Node) and node == (await session.get("/a")).value
        assert names == ("b", "c") and reply.zxid == 4
        assert isinstance(missing, NoNode) and (missing.path, missing.operation, missing.zxid) == ("/no", "get", 4)
        assert isinstance(neither, NoNode) and (neither.path, neither.operation) == ("/no/no", "children")
        assert (await session.multi_read([])).value == ()
        assert len(bench.transactions) == 4  # reads take no zxid

    bench.run(main())


def test_many_operations_fail_as_one_does() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1")
        with pytest.raises(MultiRefused, match=r"refused at its operation 1 \(BadArguments\)"):
            await session.multi([Create("/a", b""), Delete("")])
        bad, good = (await session.multi_read([GetRead(""), ChildrenRead("/")])).value
        assert isinstance(bad, BadArguments) and good == ("zookeeper",)
        assert len(bench.transactions) == 1  # neither was sent to be refused
        pending: list[Future[Any]] = [session.multi([Create("/a", b"")]), session.multi_read([GetRead("/a")])]
        bench.zookeeper.break_connection(session.session_id)
        assert [await outcome(each) for each in pending] == ["ConnectionLoss", "ConnectionLoss"]
        await session.close()
        with pytest.raises(SessionClosed, match="multi /a"):
            await session.multi([Create("/a", b"")])

    bench.run(main())


def test_what_the_server_would_not_take_is_not_sent() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1")
        room = REQUEST_LIMIT_BYTES - request_bytes(Request(1, Operation.CREATE, "/big"))
        with pytest.raises(RequestTooLarge, match=r"create of 1048576 bytes .* /big"):
            await session.create("/big", b"x" * (room + 1))
        assert bench.kinds() == [TransactionKind.SESSION_OPENED]
        assert (await session.create("/big", b"x" * room)).zxid == 2
        half = b"x" * (room // 2)
        assert await outcome(session.multi([Set("/big", half), Set("/big", half)])) == "RequestTooLarge"
        assert len((await session.multi_read([GetRead("/big")] * 70_000)).value) == 70_000  # real ones are split
        assert await outcome(session.get("/" + "x" * REQUEST_LIMIT_BYTES)) == "RequestTooLarge"
        assert (await session.get("/big")).value.stat.version == 0

    bench.run(main())


def test_lengths_are_those_of_the_wire() -> None:
    # From jute: header 8; path 4 + 3 bytes of UTF-8; data 4 + 2; ACL 27; flags or version 4; watch 1.
    path = "/é"
    lengths = {
        Request(1, Operation.CREATE, path, data=b"xy"): 8 + 7 + 6 + 27 + 4,
        Request(1, Operation.SET, path, data=b"xy"): 8 + 7 + 6 + 4,
        Request(1, Operation.DELETE, path): 8 + 7 + 4,
        Request(1, Operation.GET, path): 8 + 7 + 1,
        Request(1, Operation.MULTI, path, writes=(Create(path, b"xy"), Check(path, 1))): 8 + 9 + 44 + 9 + 11 + 9,
        Request(1, Operation.MULTI_READ, path, reads=(GetRead(path), ChildrenRead(path))): 8 + 9 + 8 + 9 + 8 + 9,
    }
    assert {request.operation: request_bytes(request) for request in lengths} == {
        request.operation: length for request, length in lengths.items()
    }
