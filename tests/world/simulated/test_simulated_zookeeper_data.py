"""The data model: what a real ZooKeeper 3.9 answers, checked against one by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from simulated_bench import Bench, outcome

from rebalance_lab.history.transactions import Transaction, TransactionKind
from rebalance_lab.kernel import Future
from rebalance_lab.world import errors
from rebalance_lab.world.ports import Stat
from rebalance_lab.world.simulated.audit import ImpossibleWorld
from rebalance_lab.world.simulated.settings import SIMULATED_EPOCH_MS, ServerSettings


def test_a_fresh_server_answers_as_a_real_one() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1")
        reply = await session.children("/")
        assert reply.value.names == ("zookeeper",)
        assert reply.value.stat == Stat(0, 0, 0, 0, 0, -1, 0, 0, 0, 1, 0)
        assert reply.zxid == 1  # the session's own opening

    bench.run(main())


def test_a_created_znode_has_the_stat_of_its_transaction() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1")
        created = await session.create("/a", b"one", ephemeral=True)
        node = (await session.get("/a")).value
        assert (created.value, created.zxid, node.data) == ("/a", 2, b"one")
        assert (node.stat.czxid, node.stat.mzxid, node.stat.pzxid) == (2, 2, 2)
        assert node.stat.ephemeral_owner == session.session_id
        assert node.stat.ctime_ms == node.stat.mtime_ms == bench.transactions[1].wall_ms
        assert SIMULATED_EPOCH_MS <= node.stat.ctime_ms <= SIMULATED_EPOCH_MS + bench.now_us // 1000

    bench.run(main())


def test_versions_count_changes_and_guard_writes() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1")
        await session.create("/a", b"")
        stat = (await session.set("/a", b"xy", version=0)).value
        assert (stat.version, stat.mzxid, stat.czxid, stat.data_length) == (1, 3, 2, 2)
        assert await outcome(session.set("/a", b"", version=0)) == "BadVersion"
        assert await outcome(session.delete("/a", version=0)) == "BadVersion"
        assert (await session.get("/a")).value.data == b"xy"
        await session.delete("/a", version=1)
        assert (await session.exists("/a")).value is None

    bench.run(main())


def test_sequential_names_count_creations_and_cversion_deletions_too() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1")
        await session.create("/q", b"")
        assert (await session.create("/q/", b"", sequence=True)).value == "/q/0000000000"
        assert (await session.create("/q/n-", b"", sequence=True, ephemeral=True)).value == "/q/n-0000000001"
        await session.delete("/q/0000000000")
        assert (await session.create("/q/n-", b"", sequence=True)).value == "/q/n-0000000002"
        listing = (await session.children("/q")).value
        assert listing.names == ("n-0000000001", "n-0000000002")
        assert (listing.stat.cversion, listing.stat.num_children, listing.stat.pzxid) == (4, 2, 6)
        assert await outcome(session.create("/q/n-0000000001/child", b"")) == "NoChildrenForEphemerals"

    bench.run(main())


@pytest.mark.parametrize(
    ("operation", "path", "expected"),
    [
        ("create", "/a", "NodeExists"),
        ("create", "/", "NodeExists"),
        ("create", "/no/child", "NoNode"),
        ("create", "/a//b", "NoNode"),
        ("create", "/a/", "BadArguments"),
        ("create", "/a/..", "BadArguments"),
        ("create", "relative", "BadArguments"),
        ("create", "/q\x7f", "BadArguments"),
        ("create", "/q\U0001f600", "BadArguments"),
        ("create", "/no\0/child", "BadArguments"),
        ("create", "/q\xa0", "ok"),
        ("delete", "/", "BadArguments"),
        ("delete", "/zookeeper/quota", "BadArguments"),
        ("delete", "relative", "BadArguments"),
        ("delete", "/no", "NoNode"),
        ("delete", "/a", "NotEmpty"),
        ("delete", "/a/b", "ok"),
        ("set", "/no", "NoNode"),
        ("set", "/a/", "BadArguments"),
        ("set", "/", "ok"),
    ],
)
def test_writes_and_their_refusals(operation: str, path: str, expected: str) -> None:
    """Each takes a zxid, refused or not; a refusal is logged as an ERROR with its code."""
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1")
        await session.create("/a", b"")
        await session.create("/a/b", b"")
        writes: dict[str, Callable[[], Future[Any]]] = {
            "create": lambda: session.create(path, b""),
            "delete": lambda: session.delete(path),
            "set": lambda: session.set(path, b"x"),
        }
        assert await outcome(writes[operation]()) == expected
        assert (await session.exists("/a")).zxid == 4
        last = bench.transactions[-1]
        assert last.zxid == 4
        if expected != "ok":
            assert (last.kind, last.code) == (TransactionKind.ERROR, getattr(errors, expected).code)

    bench.run(main())


def test_an_error_says_which_operation_path_session_and_zxid() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1")
        with pytest.raises(errors.NoNode, match=rf"get /no \(session {session.session_id:#x}, zxid 0x1\)"):
            await session.get("/no")
        assert await outcome(session.get("")) == "BadArguments"

    bench.run(main())


def test_readers_share_one_list_until_it_changes() -> None:
    bench = Bench()

    async def main() -> None:
        first, second = await bench.connected("m1"), await bench.connected("m2")
        await first.create("/b", b"")
        await first.create("/a", b"")
        one, other = (await first.children("/")).value, (await second.children("/")).value
        assert one is other and one.names == ("a", "b", "zookeeper")
        await first.delete("/a")
        assert (await second.children("/")).value.names == ("b", "zookeeper")
        assert one.names == ("a", "b", "zookeeper")

    bench.run(main())


def test_timeouts_are_negotiated_in_ticks() -> None:
    bench = Bench(settings=ServerSettings(tick_ms=400))

    async def main() -> None:
        sessions = [await bench.connected(f"m{asked}", asked) for asked in (1, 3000, 60_000)]
        assert [session.negotiated_timeout_ms for session in sessions] == [800, 3000, 8000]
        assert [transaction.timeout_ms for transaction in bench.transactions] == [800, 3000, 8000]
        assert len({session.session_id for session in sessions}) == 3

    bench.run(main())


def test_settings_and_connect_strings_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="tick"):
        ServerSettings(tick_ms=0)
    with pytest.raises(ValueError, match="no planted bug 'typo'"):
        Bench(plant="typo")
    with pytest.raises(ValueError, match="election_ms"):
        ServerSettings(election_ms=(5, 4))
    with pytest.raises(ValueError, match="sync_limit_ticks"):
        ServerSettings(sync_limit_ticks=0)
    for servers in ((), ("z1", "z1")):
        with pytest.raises(ValueError, match="each once"):
            Bench(servers=servers)
    factory = Bench(servers=("z1", "z2")).zookeeper.factory(Bench().process("m1"), "h")
    for connect, wrong in (
        ("z1:2181/kafka/", "ends with a slash"),
        ("z1:2181,z9:2181", "names z9: the simulated servers are z1, z2"),
        ("simulated:2181", "names simulated: the simulated servers are z1, z2"),
        ("", "names no server"),
    ):
        with pytest.raises(ValueError, match=wrong):
            factory.open(connect, 2000)
    with pytest.raises(ValueError, match="timeout of 0 ms"):
        factory.open("z1:2181", 0)


def owner_claims(plant: str | None) -> list[tuple[TransactionKind, str]]:
    bench = Bench(plant=plant)

    async def main() -> None:
        first, second = await bench.connected("m1"), await bench.connected("m2")
        for path in ("/owners", "/ids"):
            await first.create(path, b"")
        for path in ("/owners/0", "/ids/0"):
            await first.create(path, b"m1", ephemeral=True)
            await outcome(second.create(path, b"m2", ephemeral=True))
        await first.close()

    bench.run(main())
    return [(each.kind, each.path) for each in bench.transactions[4:]]


def test_the_planted_bug_lets_a_second_owner_in_and_nothing_else() -> None:
    create, error = TransactionKind.CREATE, TransactionKind.ERROR
    closed = (TransactionKind.SESSION_CLOSED, "")
    assert owner_claims(None) == [(create, "/owners/0"), (error, ""), (create, "/ids/0"), (error, ""), closed]
    planted = owner_claims("two-owners")
    assert planted == [(create, "/owners/0"), (create, "/owners/0"), (create, "/ids/0"), (error, ""), closed]


def test_the_log_lists_what_the_tree_removed_at_the_end_of_a_session() -> None:
    """Not what it should have removed: here /b loses its owner, and stays."""
    bench = Bench()

    async def main() -> None:
        session, other = await bench.connected("m1"), await bench.connected("m2")
        for path in ("/c", "/b", "/a"):
            await session.create(path, b"", ephemeral=True)
        await other.create("/d", b"", ephemeral=True)
        tree = bench.zookeeper._ensemble.authority.tree
        del tree.ephemerals[session.session_id]["/b"]
        tree.nodes["/b"].owner = 0
        await session.close()
        assert bench.transactions[-1].removed == ("/a", "/c")
        assert (await other.exists("/b")).value is not None
        await other.close()
        assert bench.transactions[-1].removed == ("/d",)
        third = await bench.connected("m3")
        await third.close()
        assert bench.transactions[-1].removed == ()

    bench.run(main())


def test_the_audit_sees_a_znode_whose_session_is_dead() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1")
        await session.create("/a", b"", ephemeral=True)
        authority = bench.zookeeper._ensemble.authority
        tree = authority.tree
        del tree.ephemerals[session.session_id]  # so its end forgets the znode
        authority.audit.committed(3, (Transaction(3, 0, 0, 0, TransactionKind.SET, path="/a"),))
        with pytest.raises(ImpossibleWorld, match=r"/a belongs to session 0x\w+, which disowns it"):
            bench.zookeeper.check()
        tree.nodes["/a"].owner = 77
        with pytest.raises(ImpossibleWorld, match="/a belongs to session 0x4d, which is dead"):
            bench.zookeeper.check()
        tree.nodes["/a"].owner = 0
        tree.nodes["/"].names.remove("a")
        with pytest.raises(ImpossibleWorld, match="/a is not listed by its parent"):
            bench.zookeeper.check()
        tree.nodes["/"].names.insert(0, "a")
        with pytest.raises(ImpossibleWorld, match="0x9 is taken after 0x3"):
            authority.audit.committed(9, ())
        with pytest.raises(ImpossibleWorld, match="SET has zxid 0x3 in the transaction 0x4"):
            authority.audit.committed(4, (Transaction(3, 0, 0, 0, TransactionKind.SET),))

    bench.run(main())
