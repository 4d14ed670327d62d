"""Links that lose what is sent: the client's patience, the server's, and TCP's."""

from __future__ import annotations

from typing import Any

import pytest
from simulated_bench import SECOND, Bench, outcome

from rebalance_lab.history.transactions import TransactionKind
from rebalance_lab.kernel import Future
from rebalance_lab.world.ports import SessionEventKind, SessionState, WatchKind, ZooKeeper
from rebalance_lab.world.tcp import RETRY_DATA_US, RETRY_SYN_US, retried_us

TIMEOUT_MS = 6000
THIRD_US = 2 * SECOND

WAYS = [(True, True), (True, False), (False, True)]


async def next_kind(session: ZooKeeper) -> SessionEventKind:
    return (await session.events.get()).kind


@pytest.mark.parametrize(("to_server", "to_client"), WAYS)
@pytest.mark.parametrize("seed", range(3))
def test_the_client_gives_up_after_two_thirds_of_silence(seed: int, to_server: bool, to_client: bool) -> None:
    bench = Bench(seed)

    async def main() -> None:
        session = await bench.connected("m1", TIMEOUT_MS)
        await bench.sleep(10)
        cut_us = bench.now_us
        bench.zookeeper.cut(bench.process("m1"), to_server=to_server, to_client=to_client)
        assert await next_kind(session) is SessionEventKind.DISCONNECTED
        quiet_us = bench.now_us - cut_us  # it heard the answer to its last ping up to a third ago
        assert THIRD_US <= quiet_us <= 2 * THIRD_US + 10_000
        assert session.state is SessionState.CONNECTING

    bench.run(main())


@pytest.mark.parametrize(("to_server", "to_client"), WAYS)
@pytest.mark.parametrize("seed", range(3))
def test_the_server_expires_whom_it_does_not_hear(seed: int, to_server: bool, to_client: bool) -> None:
    bench = Bench(seed)

    async def main() -> None:
        session = await bench.connected("m1", TIMEOUT_MS)
        await session.create("/e", b"", ephemeral=True)
        await bench.sleep(10)
        cut_us = bench.now_us
        bench.zookeeper.cut(bench.process("m1"), to_server=to_server, to_client=to_client)
        while bench.zookeeper.living_sessions:
            await bench.sleep(0.01)
        ended_us = bench.now_us - cut_us
        if to_server:  # its last ping came up to a third ago
            assert 2 * THIRD_US <= ended_us <= 3 * THIRD_US + SECOND
        else:  # it goes on pinging until it gives up itself
            assert 3 * THIRD_US <= ended_us <= 5 * THIRD_US + SECOND
        assert bench.kinds()[-1] is TransactionKind.SESSION_CLOSED
        assert len(session.events) == 1  # Disconnected: it can learn no more
        bench.zookeeper.heal(bench.process("m1"))
        assert await next_kind(session) is SessionEventKind.DISCONNECTED
        assert await next_kind(session) is SessionEventKind.EXPIRED

    bench.run(main())


def test_a_short_cut_is_not_noticed() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1", TIMEOUT_MS)
        watch = (await session.exists("/a", watch=True)).watch
        other = await bench.connected("m2", TIMEOUT_MS)
        for _ in range(20):
            bench.zookeeper.cut(bench.process("m1"), to_server=True, to_client=True)
            await bench.sleep(0.7)
            bench.zookeeper.heal(bench.process("m1"))
            await bench.sleep(3)
        assert session.state is SessionState.CONNECTED and len(session.events) == 0
        await other.create("/a", b"")
        assert watch is not None and (await watch).kind is WatchKind.CREATED
        await bench.sleep(60)
        assert bench.zookeeper.living_sessions == (session.session_id, other.session_id)

    bench.run(main())


@pytest.mark.parametrize(("to_server", "to_client"), WAYS)
def test_what_was_lost_is_sent_again_in_order(to_server: bool, to_client: bool) -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1", TIMEOUT_MS)
        bench.zookeeper.cut(bench.process("m1"), to_server=to_server, to_client=to_client)
        began_us = bench.now_us
        asked: list[Future[Any]] = [session.create("/a", b""), session.set("/a", b"1"), session.create("/b", b"")]
        await bench.sleep(1)
        assert not any(each.done for each in asked)
        applied = TransactionKind.CREATE in bench.kinds()
        assert applied is not to_server  # only answers were lost
        bench.zookeeper.heal(bench.process("m1"))
        assert [await outcome(each) for each in asked] == ["ok", "ok", "ok"]
        assert bench.now_us - began_us == pytest.approx(7 * RETRY_DATA_US, abs=5000)  # tries at 1, 3, 7 times 0.2 s

    bench.run(main())


def test_a_write_that_was_lost_on_a_dead_connection_is_not_applied() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1", TIMEOUT_MS)
        bench.zookeeper.cut(bench.process("m1"), to_server=True, to_client=False)
        lost = session.create("/a", b"")
        assert await outcome(lost) == "ConnectionLoss"
        while bench.zookeeper.living_sessions:
            await bench.sleep(0.1)
        bench.zookeeper.heal(bench.process("m1"))
        await bench.sleep(20)
        assert bench.kinds() == [TransactionKind.SESSION_OPENED, TransactionKind.SESSION_CLOSED]

    bench.run(main())


@pytest.mark.parametrize(("to_server", "to_client"), WAYS)
def test_new_connections_need_both_ways(to_server: bool, to_client: bool) -> None:
    bench = Bench()

    async def main() -> None:
        bench.zookeeper.factory(bench.process("m1"), "host-m1")
        bench.zookeeper.cut(bench.process("m1"), to_server=to_server, to_client=to_client)
        session = bench.open("m1", TIMEOUT_MS)
        waiting = session.exists("/")
        await bench.sleep(5)
        assert not waiting.done and bench.transactions == []
        assert await outcome(waiting) == "ConnectionLoss"  # the connect timeout
        bench.zookeeper.heal(bench.process("m1"))
        assert await next_kind(session) is SessionEventKind.CONNECTED

    bench.run(main())


def test_a_cut_during_a_connection_attempt_ends_it_in_time() -> None:
    bench = Bench()

    async def main() -> None:
        session = bench.open("m1", TIMEOUT_MS)
        bench.zookeeper.cut(bench.process("m1"), to_server=False, to_client=True)  # its request is under way
        waiting = session.exists("/")
        began_us = bench.now_us
        assert await outcome(waiting) == "ConnectionLoss"
        assert bench.now_us - began_us == TIMEOUT_MS * 1000

    bench.run(main())


def test_the_connect_timeout_begins_anew_when_a_late_connection_opens() -> None:
    """ClientCnxnSocketNIO.doTransport after finishConnect, ZooKeeper 3.4.6 and 3.9.3."""
    bench = Bench()

    async def main() -> None:
        bench.zookeeper.factory(bench.process("m1"), "host-m1")
        bench.zookeeper.cut(bench.process("m1"), to_server=True, to_client=True)
        waiting = bench.open("m1", TIMEOUT_MS).exists("/")
        began_us = bench.now_us
        bench.zookeeper.pause_server("z1")  # it takes connections, and answers none
        await bench.sleep(2)
        bench.zookeeper.heal(bench.process("m1"))
        assert await outcome(waiting) == "ConnectionLoss"
        opened_us = retried_us(began_us, began_us + 2 * SECOND, RETRY_SYN_US)
        assert opened_us == began_us + 3 * SECOND
        assert bench.now_us == opened_us + TIMEOUT_MS * 1000

    bench.run(main())


def test_others_are_not_concerned() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1", TIMEOUT_MS)
        other = await bench.connected("m2", TIMEOUT_MS)
        bench.zookeeper.cut(bench.process("m1"), to_server=True, to_client=True)
        for _ in range(20):
            await other.exists("/")
            await bench.sleep(1)
        assert session.state is SessionState.CONNECTING and other.state is SessionState.CONNECTED

    bench.run(main())


def test_a_paused_process_that_was_cut_off_finds_out_when_it_goes_on() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1", TIMEOUT_MS)
        bench.zookeeper.cut(bench.process("m1"), to_server=True, to_client=True)
        bench.process("m1").pause()
        await bench.sleep(30)
        assert session.state is SessionState.CONNECTED and bench.zookeeper.living_sessions == ()
        bench.process("m1").resume()
        assert await next_kind(session) is SessionEventKind.DISCONNECTED
        bench.zookeeper.heal(bench.process("m1"))
        assert await next_kind(session) is SessionEventKind.EXPIRED

    bench.run(main())


def test_many_idle_sessions_expire_after_their_links_are_cut() -> None:
    bench = Bench()
    count = 2000

    async def main() -> None:
        sessions = [await bench.connected(f"m{number}", 10_000) for number in range(count)]
        before = bench.kernel.steps
        await bench.sleep(600)
        assert bench.kernel.steps - before <= 1  # idling costs nothing
        for number in range(count):
            bench.zookeeper.cut(bench.process(f"m{number}"), to_server=True, to_client=True)
        await bench.sleep(11)
        assert bench.zookeeper.living_sessions == ()
        assert {session.state for session in sessions} == {SessionState.CONNECTING}

    bench.run(main())
