"""Leaders that die, pause or lose their majority; servers that come back; storms of all of it."""

from __future__ import annotations

import pytest
from simulated_bench import SECOND, Bench, outcome
from simulated_ensemble_bench import EPOCH, THREE, agree, kinds, three, until_led, znodes

from rebalance_lab.history.transactions import TransactionKind
from rebalance_lab.kernel import RandomStream
from rebalance_lab.world.errors import NoNode
from rebalance_lab.world.ports import SessionEventKind, SessionState
from rebalance_lab.world.simulated.tree import Tree
from rebalance_lab.world.simulated.zookeeper import NoSuchServer


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
        while await outcome(session.exists("/e")) == "ConnectionLoss":  # its attempts go round all three
            pass
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
