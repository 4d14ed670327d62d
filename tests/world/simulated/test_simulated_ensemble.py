"""Several servers with a leader: what each has applied, and who may connect where."""

from __future__ import annotations

import pytest
from simulated_bench import SECOND, outcome
from simulated_ensemble_bench import EPOCH, THREE, agree, kinds, three, znodes

from rebalance_lab.history.transactions import TransactionKind
from rebalance_lab.world.ports import SessionEventKind, WatchKind
from rebalance_lab.world.simulated.audit import ImpossibleWorld
from rebalance_lab.world.simulated.tree import Tree
from rebalance_lab.world.simulated.zookeeper import NoSuchServer

QUARTER = SECOND // 4


def test_the_highest_id_leads_and_epochs_begin_with_one() -> None:
    bench = three()

    async def main() -> None:
        assert (bench.zookeeper.servers, bench.zookeeper.leader) == (THREE, "z3")
        session = await bench.connected("m1", connect="z1:2181")
        reply = await session.create("/a", b"x")
        assert reply.zxid == EPOCH + 2
        assert [each.zxid - EPOCH for each in bench.transactions] == [1, 2]
        assert session.session_id >> 56 == 1  # of the server it was opened at
        assert bench.zookeeper.serving(session.session_id) == "z1"
        await bench.sleep(0.1)
        assert agree(bench)
        assert {bench.zookeeper.applied_zxid(name) for name in THREE} == {EPOCH + 2}

    bench.run(main())


def test_every_kind_of_write_reaches_every_server() -> None:
    bench = three()

    async def main() -> None:
        first, second = await bench.connected("m1", connect="z1"), await bench.connected("m2", connect="z2")
        await first.create("/a", b"1")
        await first.create("/a/s-", b"", sequence=True, ephemeral=True)
        await first.set("/a", b"22", version=0)
        await first.create("/b", b"")
        await first.delete("/b")
        assert await outcome(first.delete("/no")) == "NoNode"
        await second.create("/c", b"", ephemeral=True)
        await second.close()
        await bench.sleep(0.1)
        assert agree(bench)
        assert list(znodes(bench.server.tree)) == [*Tree().nodes, "/a", "/a/s-0000000000"]

    bench.run(main())


def test_a_follower_that_removes_other_znodes_than_the_log_lists_ends_the_trial() -> None:
    bench = three()

    async def main() -> None:
        session = await bench.connected("m1", connect="z1")
        await session.create("/a", b"", ephemeral=True)
        await bench.sleep(0.1)
        tree = bench.zookeeper._ensemble.servers["z2"].tree
        del tree.ephemerals[session.session_id]
        tree.nodes["/a"].owner = 0
        await session.close()
        await bench.sleep(0.1)

    told = r"server z2 removed \[\], and its leader \('/a',\)"
    with pytest.raises(ImpossibleWorld, match=told):
        bench.run(main())


def test_a_follower_answers_its_own_writer_after_it_applied_the_write() -> None:
    bench = three()

    async def main() -> None:
        writer = await bench.connected("m1", 10_000, "z1")
        reader = await bench.connected("m2", 10_000, "z3")
        bench.zookeeper.lag("z1", QUARTER)
        began_us = bench.now_us
        created = writer.create("/a", b"")
        behind = writer.exists("/a")  # asked at once; answered in its turn, with the znode there
        seen_us = 0
        while seen_us == 0:
            if (await reader.exists("/a")).value is not None:
                seen_us = bench.now_us
        assert not created.done and seen_us - began_us < QUARTER  # the leader has it long before
        assert (await behind).value is not None and created.done
        assert QUARTER < bench.now_us - began_us < 2 * QUARTER

    bench.run(main())


def test_a_lagging_follower_shows_the_past_and_stays_connected() -> None:
    bench = three()

    async def main() -> None:
        at_leader = await bench.connected("m1", 2000, "z3")
        at_follower = await bench.connected("m2", 2000, "z1")
        await at_leader.create("/ids", b"")
        await bench.sleep(0.01)
        watch = (await at_follower.children("/ids", watch=True)).watch
        bench.zookeeper.lag("z1", 5 * SECOND)
        began_us = bench.now_us
        await at_leader.create("/ids/1", b"", ephemeral=True)
        await bench.sleep(4)
        assert (await at_leader.children("/ids")).value.names == ("1",)
        assert (await at_follower.children("/ids")).value.names == ()
        assert watch is not None and not watch.done
        assert (await watch).kind is WatchKind.CHILD
        assert 5 * SECOND <= bench.now_us - began_us < 5.01 * SECOND
        assert (await at_follower.children("/ids")).value.names == ("1",)
        assert await kinds(at_follower, 0) == [] and len(at_follower.events) == 0
        bench.zookeeper.lag("z1", 0)
        await at_leader.create("/ids/2", b"")
        await bench.sleep(0.01)
        assert (await at_follower.children("/ids")).value.names == ("1", "2")

    bench.run(main())


def test_who_writes_at_a_server_that_lags_too_much_gives_it_up() -> None:
    """Its pings wait behind the write: two thirds of the session time-out later it tries another."""
    bench = three()

    async def main() -> None:
        session = await bench.connected("m1", 3000, "z1")
        bench.zookeeper.lag("z1", 10 * SECOND)
        began_us = bench.now_us
        assert await outcome(session.create("/a", b"")) == "ConnectionLoss"
        assert bench.now_us - began_us == pytest.approx(2 * SECOND, abs=10_000)
        assert bench.kinds()[-1] is TransactionKind.CREATE  # decided long ago

    bench.run(main())


def test_a_server_behind_what_a_client_has_seen_does_not_take_it() -> None:
    """It tries again and again, and each time comes back to the one that knows what it knows."""
    bench = three()

    async def main() -> None:
        session = await bench.connected("m1", 10_000, "z1,z3")
        while bench.zookeeper.serving(session.session_id) != "z3":
            bench.zookeeper.break_connection(session.session_id)
            await kinds(session, 2)
        old = await bench.connected("m2", 10_000, "z1")
        await bench.sleep(0.1)
        before = bench.zookeeper.applied_zxid("z1")
        bench.zookeeper.lag("z1", 30 * SECOND)
        for number in range(8):
            await session.create(f"/{number}", b"")
            bench.zookeeper.break_connection(session.session_id)
            await kinds(session, 2)
            assert bench.zookeeper.serving(session.session_id) == "z3"
            assert (await session.exists(f"/{number}")).value is not None  # never back in time
        assert bench.zookeeper.applied_zxid("z1") == before
        assert (await old.children("/")).value.names == ("zookeeper",)  # who has seen nothing sees the past

    bench.run(main())


def test_lag_leaves_a_majority_on_time() -> None:
    bench = three()
    bench.zookeeper.lag("z1", 1000)
    with pytest.raises(ValueError, match="at least 2 of 3 servers must be without one; with it z1, z2 would lag"):
        bench.zookeeper.lag("z2", 1000)
    bench.zookeeper.lag("z1", 0)
    bench.zookeeper.lag("z2", 1000)
    with pytest.raises(NoSuchServer, match="no server is named 'z9'; there are z1, z2, z3"):
        bench.zookeeper.lag("z9", 1)
    bench.simulation.close()


def test_a_session_survives_the_death_of_its_server() -> None:
    bench = three()

    async def main() -> None:
        session = await bench.connected("m1", 10_000)
        server = bench.zookeeper.serving(session.session_id)
        assert server is not None
        await session.create("/a", b"", ephemeral=True)
        watch = (await session.exists("/b", watch=True)).watch
        before = session.session_id
        bench.zookeeper.kill_server(server)
        assert await kinds(session, 2) == [SessionEventKind.DISCONNECTED, SessionEventKind.CONNECTED]
        assert session.session_id == before
        assert bench.zookeeper.serving(before) not in (None, server)
        assert (await session.exists("/a")).value is not None
        await session.create("/b", b"")
        assert watch is not None and watch.done and watch.result().kind is WatchKind.CREATED

    bench.run(main())
