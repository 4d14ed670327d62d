"""Several servers with a leader: what each has applied, who may connect where, and elections."""

from __future__ import annotations

import pytest
from simulated_bench import SECOND, Bench, outcome

from rebalance_lab.history.transactions import TransactionKind
from rebalance_lab.kernel import RandomStream
from rebalance_lab.world.errors import NoNode
from rebalance_lab.world.ports import SessionEventKind, SessionState, WatchKind, ZooKeeper
from rebalance_lab.world.simulated.settings import ServerSettings
from rebalance_lab.world.simulated.tree import Tree
from rebalance_lab.world.simulated.zookeeper import NoSuchServer

THREE = ("z1", "z2", "z3")
EPOCH = 1 << 32
QUARTER = SECOND // 4


def three(seed: int = 1, **settings: int) -> Bench:
    return Bench(seed, servers=THREE, settings=ServerSettings(**settings))  # type: ignore[arg-type]


def znodes(tree: Tree) -> dict[str, object]:
    return {path: (node.node(), node.children()) for path, node in tree.nodes.items()}


def agree(bench: Bench) -> bool:
    """All servers have applied the same."""
    trees = [znodes(server.tree) for server in bench.zookeeper._ensemble.servers.values()]
    return all(tree == trees[0] for tree in trees)


async def kinds(session: ZooKeeper, count: int) -> list[SessionEventKind]:
    return [(await session.events.get()).kind for _ in range(count)]


async def until_led(bench: Bench) -> str:
    while (leader := bench.zookeeper.leader) is None:
        await bench.sleep(0.01)
    return leader


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


def test_a_dead_leader_is_followed_by_an_election_and_a_new_epoch() -> None:
    bench = three()

    async def main() -> None:
        session = await bench.connected("m1", 10_000, "z1,z2")
        await session.create("/a", b"")
        began_us = bench.now_us
        bench.zookeeper.kill_server("z3")
        assert bench.zookeeper.leader is None
        assert await until_led(bench) == "z2"
        assert 200_000 <= bench.now_us - began_us <= 1_010_000
        assert await kinds(session, 2) == [SessionEventKind.DISCONNECTED, SessionEventKind.CONNECTED]
        assert (await session.create("/b", b"")).zxid == 2 * EPOCH + 1
        bench.zookeeper.start_server("z3")
        await bench.sleep(1.5)
        assert bench.zookeeper.leader == "z2"  # the one that comes back follows
        assert agree(bench)
        late = await bench.connected("m2", 10_000, "z3")
        assert (await late.exists("/b")).value is not None

    bench.run(main())


def test_nothing_is_served_during_an_election() -> None:
    bench = three(election_ms=(5000, 5000))

    async def main() -> None:
        session = await bench.connected("m1", 10_000, "z1")
        bench.zookeeper.kill_server("z3")
        waiting = session.exists("/")
        assert await outcome(waiting) == "ConnectionLoss"
        assert session.state is SessionState.CONNECTING
        while bench.zookeeper.leader is None:
            assert await outcome(session.exists("/")) in ("ConnectionLoss", "ok")
            assert session.state is not SessionState.CONNECTED or bench.zookeeper.leader is not None
        assert (await bench.connected("m2", 10_000, "z1")).state is SessionState.CONNECTED

    bench.run(main())


def test_without_a_majority_nothing_is_served_until_there_is_one() -> None:
    bench = three()

    async def main() -> None:
        session = await bench.connected("m1", 2000)
        await session.create("/e", b"", ephemeral=True)
        bench.zookeeper.kill_server("z1")
        bench.zookeeper.kill_server("z2")
        assert bench.zookeeper.leader is None
        await bench.sleep(30)
        assert bench.zookeeper.living_sessions == (session.session_id,)  # nobody is there to expire it
        bench.zookeeper.start_server("z1")
        assert await until_led(bench) == "z3"
        assert (await session.exists("/e")).value is not None
        assert session.state is SessionState.CONNECTED

    bench.run(main())


def test_who_has_the_whole_log_wins() -> None:
    bench = three()

    async def main() -> None:
        session = await bench.connected("m1", 10_000, "z1,z2")
        bench.zookeeper.kill_server("z3")
        await until_led(bench)
        await session.events.get()
        while await outcome(session.create("/a", b"")) != "ok":
            pass
        bench.zookeeper.kill_server("z1")  # z2 alone: no majority
        assert bench.zookeeper.leader is None
        bench.zookeeper.start_server("z3")  # a higher id, but it does not know /a
        assert await until_led(bench) == "z2"
        await bench.sleep(0.1)
        servers = bench.zookeeper._ensemble.servers
        assert "/a" in servers["z3"].tree.nodes and znodes(servers["z3"].tree) == znodes(servers["z2"].tree)

    bench.run(main())


def test_a_new_leader_gives_every_session_all_the_time_there_is() -> None:
    bench = three(election_ms=(1000, 1000))

    async def main() -> None:
        session = await bench.connected("m1", 2000, "z1")
        await session.create("/e", b"", ephemeral=True)
        bench.process("m1").kill()
        await bench.sleep(1)
        bench.zookeeper.kill_server("z3")
        await until_led(bench)
        led_us = bench.now_us
        while bench.zookeeper.living_sessions:
            await bench.sleep(0.01)
        assert 2 * SECOND <= bench.now_us - led_us <= 2.6 * SECOND

    bench.run(main())


@pytest.mark.parametrize("victim", ["z1", "z3"])
def test_a_paused_server_keeps_its_clients_until_they_give_it_up(victim: str) -> None:
    bench = three()

    async def main() -> None:
        session = await bench.connected("m1", 6000, f"{victim},z2")
        while bench.zookeeper.serving(session.session_id) != victim:
            bench.zookeeper.break_connection(session.session_id)
            await kinds(session, 2)
        paused_us = bench.now_us
        bench.zookeeper.pause_server(victim)
        waiting = session.exists("/")
        assert await kinds(session, 1) == [SessionEventKind.DISCONNECTED]
        assert 2 * SECOND <= bench.now_us - paused_us <= 4 * SECOND + 10_000  # two thirds since it was last heard
        assert await outcome(waiting) == "ConnectionLoss"
        await kinds(session, 1)
        assert session.state is SessionState.CONNECTED and bench.zookeeper.serving(session.session_id) == "z2"
        if victim == "z3":
            assert bench.zookeeper.leader == "z2"
        bench.zookeeper.resume_server(victim)
        await bench.sleep(2)
        await session.create("/a", b"")
        await bench.sleep(0.1)
        assert agree(bench)

    bench.run(main())


def test_a_short_pause_of_the_leader_only_delays() -> None:
    bench = three()

    async def main() -> None:
        at_leader = await bench.connected("m1", 6000, "z3")
        at_follower = await bench.connected("m2", 6000, "z1")
        bench.zookeeper.pause_server("z3")
        assert (await at_follower.exists("/")).zxid == EPOCH + 2  # followers go on serving reads
        writes = [at_leader.create("/a", b""), at_follower.create("/b", b"")]
        await bench.sleep(1)
        assert not any(write.done for write in writes)
        bench.zookeeper.resume_server("z3")
        for write in writes:
            await write
        assert bench.zookeeper.leader == "z3" and len(at_leader.events) == len(at_follower.events) == 0

    bench.run(main())


def test_a_leader_without_its_majority_decides_nothing() -> None:
    bench = three()

    async def main() -> None:
        session = await bench.connected("m1", 10_000, "z3")
        bench.zookeeper.pause_server("z1")
        bench.zookeeper.pause_server("z2")
        write = session.create("/a", b"")
        await bench.sleep(1)
        assert not write.done and bench.zookeeper.leader == "z3"
        bench.zookeeper.resume_server("z2")
        await write
        bench.zookeeper.pause_server("z2")
        await bench.sleep(3)
        assert bench.zookeeper.leader is None  # the sync limit is 2.5 s

    bench.run(main())


def test_one_server_can_be_killed_and_started_too() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1", 10_000)
        await session.create("/e", b"", ephemeral=True)
        bench.zookeeper.kill_server("z1")
        assert bench.zookeeper.leader is None
        assert await outcome(session.exists("/")) == "ConnectionLoss"
        bench.zookeeper.start_server("z1")
        while session.state is not SessionState.CONNECTED:
            await session.events.get()
        assert (await session.create("/b", b"")).zxid == 3  # one server knows no epochs
        assert (await session.exists("/e")).value is not None

    bench.run(main())


def test_one_server_can_be_paused_and_its_sessions_with_it() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1", 2000)
        bench.zookeeper.pause_server("z1")
        write = session.create("/a", b"")
        await bench.sleep(0.5)
        assert not write.done
        bench.zookeeper.resume_server("z1")
        await write
        bench.zookeeper.pause_server("z1")
        assert await outcome(session.create("/b", b"")) == "ConnectionLoss"
        await bench.sleep(10)
        assert bench.zookeeper.living_sessions == (session.session_id,)  # its tracker stands still too
        bench.zookeeper.resume_server("z1")
        await bench.sleep(5)
        assert bench.zookeeper.living_sessions in ((session.session_id,), ())

    bench.run(main())


def test_faults_that_cannot_be_are_refused() -> None:
    zookeeper = three().zookeeper
    with pytest.raises(NoSuchServer, match="z1 is serving; only one that is down can be started"):
        zookeeper.start_server("z1")
    with pytest.raises(NoSuchServer, match="z1 is not paused"):
        zookeeper.resume_server("z1")
    zookeeper.pause_server("z1")
    with pytest.raises(NoSuchServer, match="z1 is paused; it cannot be paused"):
        zookeeper.pause_server("z1")
    zookeeper.kill_server("z1")
    with pytest.raises(NoSuchServer, match="z1 is down already"):
        zookeeper.kill_server("z1")


def test_a_session_that_moved_takes_nothing_with_it() -> None:
    """A write on the old connection that arrives after the move is not done (SessionMoved)."""
    bench = three()

    async def main() -> None:
        session = await bench.connected("m1", 10_000)
        process = bench.process("m1")
        await session.create("/a", b"")
        for _ in range(20):
            bench.zookeeper.break_connection(session.session_id)
            await kinds(session, 2)
            assert (await session.exists("/a")).value is not None
        assert process.running and bench.zookeeper.living_sessions == (session.session_id,)
        tables = [server.clients for server in bench.zookeeper._ensemble.servers.values()]
        assert sum(len(table) for table in tables) == 1

    bench.run(main())


def test_expiry_reaches_a_follower_with_its_connection() -> None:
    bench = three()

    async def main() -> None:
        session = await bench.connected("m1", 2000, "z1")
        await session.create("/e", b"", ephemeral=True)
        bench.zookeeper.expire(session.session_id)
        assert await kinds(session, 2) == [SessionEventKind.DISCONNECTED, SessionEventKind.EXPIRED]
        other = await bench.connected("m2", 2000, "z1")
        with pytest.raises(NoNode):
            await other.get("/e")
        assert agree(bench)

    bench.run(main())


@pytest.mark.parametrize("seed", range(12))
def test_storms_leave_the_servers_agreed_and_no_committed_write_lost(seed: int) -> None:
    """Servers are killed, paused, lag; clients write all the while. What was told ok is there."""
    bench = three(seed)
    told: dict[str, str] = {}

    async def writer(name: str) -> None:
        session = await bench.connected(name, 10_000)
        for number in range(60):
            path = f"/{name}-{number}"
            told[path] = await outcome(session.create(path, b""))
            await bench.kernel.sleep(50_000)

    async def faults() -> None:
        zookeeper, random = bench.zookeeper, bench_random(seed)
        for _ in range(12):
            victim = THREE[random.below(3)]
            how = random.below(3)
            if how == 0:
                zookeeper.kill_server(victim)
                await bench.sleep(0.3 + random.below(1000) / 1000)
                zookeeper.start_server(victim)
            elif how == 1:
                zookeeper.pause_server(victim)
                await bench.sleep(0.1 + random.below(4000) / 1000)
                zookeeper.resume_server(victim)
            else:
                zookeeper.lag(victim, random.below(300_000))
                await bench.sleep(0.5)
                zookeeper.lag(victim, 0)
            await bench.sleep(0.2 + random.below(1500) / 1000)

    async def main() -> None:
        async with bench.kernel.scope("storm") as scope:
            for name in ("m1", "m2", "m3"):
                scope.spawn(writer(name), name)
            scope.spawn(faults(), "faults")
        await until_led(bench)
        await bench.sleep(5)
        assert agree(bench)
        there = bench.server.tree.nodes
        assert [path for path, how in told.items() if how == "ok" and path not in there] == []
        created = [each.path for each in bench.transactions if each.kind is TransactionKind.CREATE]
        assert len(set(created)) == len(created) and sorted(created) == sorted(set(there) - set(Tree().nodes))
        assert sum(how == "ok" for how in told.values()) > 60

    bench.run(main())


def bench_random(seed: int) -> RandomStream:
    return RandomStream(seed, "test", "faults")
