"""Sessions: they live at the server. What pause, kill, resume and close do to them."""

from __future__ import annotations

import pytest
from simulated_bench import SECOND, Bench, outcome

from rebalance_lab.history.transactions import Transaction, TransactionKind
from rebalance_lab.world.ports import SessionEventKind, SessionState, WatchKind
from rebalance_lab.world.simulated.settings import SIMULATED_EPOCH_MS
from rebalance_lab.world.simulated.zookeeper import NoSuchSession

TICK_US = 500_000
TIMEOUT_US = 2 * SECOND


def closing(bench: Bench) -> list[Transaction]:
    return [each for each in bench.transactions if each.kind is TransactionKind.SESSION_CLOSED]


def test_an_idle_session_lives_and_schedules_nothing() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1")
        await bench.sleep(0.1)
        assert bench.simulation.driver.empty
        await bench.sleep(3600)
        assert session.state is SessionState.CONNECTED
        assert closing(bench) == []

    bench.run(main())


@pytest.mark.parametrize("fault", ["pause", "kill"])
def test_a_silent_session_expires_within_its_bounds(fault: str) -> None:
    """Not before 2/3 of the timeout, not after the timeout and a tick; the moment of the fault decides where."""
    ages_us = []
    for seed in range(40):
        bench = Bench(seed)

        async def main(bench: Bench = bench, later_s: float = seed / 40) -> None:
            session = await bench.connected("m1")
            await bench.sleep(10 + later_s)
            begun_us = bench.now_us
            getattr(bench.process("m1"), fault)()
            await bench.sleep(5)
            (closed,) = closing(bench)
            assert (closed.session_id, closed.cxid) == (session.session_id, 0)
            ages_us.append((closed.wall_ms - SIMULATED_EPOCH_MS) * 1000 - begun_us)

        bench.run(main())
    assert min(ages_us) >= TIMEOUT_US * 2 // 3 - 1000
    assert max(ages_us) <= TIMEOUT_US + TICK_US + 1000
    assert max(ages_us) - min(ages_us) > TICK_US  # it is not one fixed time


def test_a_client_pings_each_third_of_the_timeout_after_its_last_request() -> None:
    """So what is left of a session when its client dies follows from the time since that request."""
    for thirds in (0, 1, 7):
        bench = Bench()

        async def main(bench: Bench = bench, pings: int = thirds) -> None:
            await bench.connected("m1")
            heard_us = bench.now_us + pings * (TIMEOUT_US // 3)
            await bench.sleep((pings * TIMEOUT_US // 3 + 100_000) / 1e6)
            bench.process("m1").kill()
            await bench.sleep(5)
            (closed,) = closing(bench)
            after_us = (closed.wall_ms - SIMULATED_EPOCH_MS) * 1000 - heard_us
            assert TIMEOUT_US - 5_000 <= after_us <= TIMEOUT_US + TICK_US + 1000

        bench.run(main())


def test_ephemerals_go_with_the_session_by_path_under_one_zxid() -> None:
    bench = Bench()

    async def main() -> None:
        session, other = await bench.connected("m1"), await bench.connected("m2")
        for name in ("b", "a"):
            await session.create(f"/{name}", b"", ephemeral=True)
        await session.create("/kept", b"")
        watches = [(await other.exists(path, watch=True)).watch for path in ("/b", "/a")]
        watches.append((await other.children("/", watch=True)).watch)
        bench.process("m1").kill()
        await bench.sleep(0.5)
        assert (await other.children("/")).value.names == ("a", "b", "kept", "zookeeper")
        await bench.sleep(3)
        assert [watch.result().kind for watch in watches if watch is not None] == [
            WatchKind.DELETED,
            WatchKind.DELETED,
            WatchKind.CHILD,
        ]
        listing = await other.children("/")
        assert listing.value.names == ("kept", "zookeeper")
        assert listing.value.stat.pzxid == listing.zxid == closing(bench)[0].zxid == bench.transactions[-1].zxid

    bench.run(main())


def test_a_short_pause_costs_nothing() -> None:
    for seed in range(20):
        bench = Bench(seed)

        async def main(bench: Bench = bench) -> None:
            session, other = await bench.connected("m1"), await bench.connected("m2")
            watch = (await session.exists("/a", watch=True)).watch
            assert watch is not None
            bench.process("m1").pause()
            await other.create("/a", b"")
            await bench.sleep(0.5)
            assert not watch.done
            bench.process("m1").resume()
            assert (await watch).kind is WatchKind.CREATED
            await bench.sleep(60)
            assert session.state is SessionState.CONNECTED and len(session.events) == 0
            assert closing(bench) == []

        bench.run(main())


def test_a_pause_beyond_the_read_timeout_reconnects_within_the_session() -> None:
    """ClientCnxn gives a connection up after two thirds of the timeout without a word."""
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1", 9000)
        before = session.session_id
        bench.process("m1").pause()
        await bench.sleep(6.1)
        assert closing(bench) == []
        bench.process("m1").resume()
        kinds = [(await session.events.get()).kind for _ in range(2)]
        assert kinds == [SessionEventKind.DISCONNECTED, SessionEventKind.CONNECTED]
        assert session.session_id == before
        await bench.sleep(60)
        assert closing(bench) == []

    bench.run(main())


def test_who_wakes_after_its_session_learns_it_on_reconnecting() -> None:
    waits_us: list[int] = []
    for seed in range(30):
        bench = Bench(seed)

        async def main(bench: Bench = bench) -> None:
            session = await bench.connected("m1")
            await session.create("/a", b"", ephemeral=True)
            watch = (await session.children("/", watch=True)).watch
            assert watch is not None
            bench.process("m1").pause()
            await bench.sleep(4)
            assert len(closing(bench)) == 1 and session.state is SessionState.CONNECTED
            resumed_us = bench.now_us
            bench.process("m1").resume()
            assert session.state is SessionState.CONNECTING
            operation = session.get("/a")
            kinds = [(await session.events.get()).kind for _ in range(2)]
            assert kinds == [SessionEventKind.DISCONNECTED, SessionEventKind.EXPIRED]
            waits_us.append(bench.now_us - resumed_us)
            assert session.state is SessionState.EXPIRED
            assert await outcome(operation) == "SessionExpired"
            assert await outcome(session.get("/a")) == "SessionExpired"
            assert await outcome(watch) == "SessionExpired"  # its own last event was lost, if it was sent
            await session.close()
            assert session.state is SessionState.EXPIRED

        bench.run(main())
    assert 1_000_000 < min(waits_us) < 1_200_000  # one server: StaticHostProvider's full second comes first
    assert 1_800_000 < max(waits_us) < 2_010_000


def test_no_session_is_ended_by_its_client() -> None:
    """As in ZooKeeper 3.4.6. The client of 3.9.3 ends one after 4/3 of its timeout (expirationTimeout)."""
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1")
        bench.zookeeper.kill_server(bench.zookeeper.servers[0])
        assert (await session.events.get()).kind is SessionEventKind.DISCONNECTED
        await bench.sleep(60)  # thirty timeouts
        assert session.state is SessionState.CONNECTING and len(session.events) == 0

    bench.run(main())


def test_its_own_last_watch_events_reach_an_awake_client_or_not() -> None:
    """What it sends is lost, so the server ends its session; what it hears keeps it from giving up. The
    server closes the connection as it queues the events: a real one was seen to do both."""
    told = []
    for seed in range(40):
        bench = Bench(seed)

        async def main(bench: Bench = bench) -> bool:
            session, other = await bench.connected("m1"), await bench.connected("m2")
            await session.create("/own", b"", ephemeral=True)
            own = (await session.exists("/own", watch=True)).watch
            assert own is not None
            heard = [(await session.exists(f"/{number}", watch=True)).watch for number in range(5)]
            bench.zookeeper.cut(bench.process("m1"), to_server=True, to_client=False)
            for number in range(5):
                await bench.sleep(0.6)
                await other.create(f"/{number}", b"")
            assert [watch.done for watch in heard if watch is not None][:2] == [True, True]
            bench.zookeeper.heal(bench.process("m1"))
            await bench.sleep(5)
            assert session.state is SessionState.EXPIRED and len(closing(bench)) == 1
            return await outcome(own) == "ok"

        told.append(bench.run(main()))
    assert 5 < sum(told) < 35


def test_a_pause_while_connecting_gives_the_attempt_up() -> None:
    """Beyond the connect timeout; the answer that lies in the socket's buffer is lost."""
    bench = Bench()

    async def main() -> None:
        session = bench.open("m1", 2000)
        bench.process("m1").pause()
        await bench.sleep(2.1)
        bench.process("m1").resume()
        await bench.sleep(0.01)
        assert session.state is SessionState.CONNECTING and len(session.events) == 0
        assert (await session.events.get()).kind is SessionEventKind.CONNECTED
        assert bench.kinds().count(TransactionKind.SESSION_OPENED) == 2  # the first one is nobody's

    bench.run(main())


def test_close_ends_the_session_at_the_server() -> None:
    bench = Bench()

    async def main() -> None:
        session, other = await bench.connected("m1"), await bench.connected("m2")
        await session.create("/a", b"", ephemeral=True)
        own = (await session.exists("/a", watch=True)).watch
        armed = (await session.exists("/b", watch=True)).watch
        last = session.get("/a")
        closed = session.close()
        assert session.close() is closed
        assert await outcome(session.get("/a")) == "SessionClosed"
        await closed
        assert session.state is SessionState.CLOSED
        assert last.done and last.error is None
        assert own is not None and own.result().kind is WatchKind.DELETED
        assert armed is not None and await outcome(armed) == "SessionClosed"
        assert (await other.exists("/a")).value is None
        (transaction,) = closing(bench)
        assert transaction.session_id == session.session_id and transaction.cxid > 0
        assert bench.zookeeper.living_sessions == (other.session_id,)

    bench.run(main())


def test_closing_before_the_connection_is_there_still_tells_the_server() -> None:
    bench = Bench()

    async def main() -> None:
        session = bench.open("m1")
        waiting = session.exists("/")
        await session.close()
        assert waiting.done and waiting.error is None
        assert bench.kinds() == [TransactionKind.SESSION_OPENED, TransactionKind.SESSION_CLOSED]

    bench.run(main())


def test_closing_without_a_connection_leaves_the_session_to_its_expiry() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1")
        bench.zookeeper.break_connection(session.session_id)
        await session.events.get()
        waiting = session.exists("/")
        await session.close()
        assert session.state is SessionState.CLOSED
        assert await outcome(waiting) == "SessionClosed"
        assert closing(bench) == []
        await bench.sleep(3)
        assert len(closing(bench)) == 1

    bench.run(main())


def test_an_expired_session_cannot_be_a_target() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1")
        bench.zookeeper.expire(session.session_id)
        for fault in (bench.zookeeper.expire, bench.zookeeper.break_connection, bench.zookeeper.lose_next_reply):
            with pytest.raises(NoSuchSession, match=f"{session.session_id:#x}"):
                fault(session.session_id)
        with pytest.raises(ValueError, match="stranger has no ZooKeeper factory"):
            bench.zookeeper.hold_connections(bench.process("stranger"))

    bench.run(main())


def test_a_process_has_one_endpoint_and_many_sessions() -> None:
    bench = Bench()

    async def main() -> None:
        first, second = await bench.connected("m1"), await bench.connected("m1")
        await first.create("/a", b"", ephemeral=True)
        await second.create("/b", b"", ephemeral=True)
        bench.process("m1").kill()
        await bench.sleep(3)
        assert {each.session_id for each in closing(bench)} == {first.session_id, second.session_id}

    bench.run(main())
