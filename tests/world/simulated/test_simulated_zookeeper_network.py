"""The network: order, loss, broken and held connections, replies lost after they were applied."""

from __future__ import annotations

import pytest
from simulated_bench import Bench, outcome

from rebalance_lab.history.transactions import TransactionKind
from rebalance_lab.world.ports import Create, Delete, SessionEventKind, SessionState, Set, WatchKind
from rebalance_lab.world.simulated.settings import NetworkSettings


def test_latency_keeps_each_direction_in_order() -> None:
    bench = Bench(network=NetworkSettings(latency_us=(100, 5000)))

    async def main() -> None:
        session = await bench.connected("m1")
        began_us = bench.now_us
        done: list[int] = []
        futures = [session.create(f"/{number:03d}", b"") for number in range(100)]
        for number, future in enumerate(futures):
            future.on(lambda _reply, number=number: done.append(number))  # type: ignore[misc]
        await futures[-1]
        assert done == list(range(100))
        assert [each.path for each in bench.transactions[1:]] == [f"/{number:03d}" for number in range(100)]
        assert 200 <= bench.now_us - began_us <= 10_000

    bench.run(main())


def test_a_broken_connection_fails_what_is_pending_and_keeps_the_session() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1")
        before = session.session_id
        await session.create("/a", b"", ephemeral=True)
        pending = [session.exists("/a"), session.set("/a", b"x")]
        assert bench.zookeeper.break_connection(before)
        assert not bench.zookeeper.break_connection(before)
        assert [await outcome(each) for each in pending] == ["ConnectionLoss", "ConnectionLoss"]
        assert session.state is SessionState.CONNECTING
        waiting = session.get("/a")
        assert (await waiting).value.data == b""  # what was in flight is lost
        kinds = [(await session.events.get()).kind for _ in range(2)]
        assert kinds == [SessionEventKind.DISCONNECTED, SessionEventKind.CONNECTED]
        assert session.session_id == before
        assert bench.kinds() == [TransactionKind.SESSION_OPENED, TransactionKind.CREATE]

    bench.run(main())


def test_a_lost_reply_was_applied_all_the_same() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1")
        watch = (await session.children("/", watch=True)).watch
        bench.zookeeper.lose_next_reply(session.session_id)
        assert await outcome(session.create("/a", b"", ephemeral=True)) == "ConnectionLoss"
        assert bench.transactions[-1].path == "/a"
        assert watch is not None and not watch.done  # the event broke with the connection
        assert await outcome(session.create("/a", b"", ephemeral=True)) == "NodeExists"
        assert watch.result().kind is WatchKind.CHILD  # told by SetWatches
        assert (await session.exists("/a")).value is not None

    bench.run(main())


def test_the_reply_to_a_create_in_some_place_is_lost_and_no_other() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1")
        bench.zookeeper.lose_next_reply(session.session_id, created="/owners/")
        await session.create("/owners", b"")
        await session.create("/other", b"")
        assert (await session.exists("/owners")).value is not None
        assert bench.zookeeper.loses_next_reply(bench.process("m1"))
        assert await outcome(session.create("/owners/0", b"")) == "ConnectionLoss"
        assert bench.transactions[-1].path == "/owners/0"
        assert not bench.zookeeper.loses_next_reply(bench.process("m1"))
        assert await outcome(session.create("/owners/0", b"")) == "NodeExists"

    bench.run(main())


def test_the_reply_to_a_multi_that_begins_with_a_create_in_some_place_is_lost_and_no_other() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1")
        bench.zookeeper.lose_next_reply(session.session_id, created="/owners")
        await session.multi([Create("/other", b"/owners"), Create("/owners", b"")])
        assert await outcome(session.multi([Create("/owners", b""), Set("/other", b"")])) == "MultiRefused"
        await session.multi([Delete("/owners")])
        assert bench.zookeeper.loses_next_reply(bench.process("m1"))
        assert await outcome(session.multi([Create("/owners", b""), Set("/other", b"")])) == "ConnectionLoss"
        assert not bench.zookeeper.loses_next_reply(bench.process("m1"))
        assert (await session.exists("/owners")).value is not None

    bench.run(main())


def test_a_reply_that_is_to_be_lost_is_lost_in_the_next_session_if_there_is_none_before() -> None:
    bench = Bench()

    async def main() -> None:
        former = await bench.connected("m1")
        bench.zookeeper.lose_next_reply(former.session_id, created="/owners")
        await former.close()
        session, other = await bench.connected("m1"), await bench.connected("m2")
        await other.create("/owners", b"")
        assert bench.zookeeper.loses_next_reply(bench.process("m1"))
        assert await outcome(session.create("/owners/0", b"")) == "ConnectionLoss"
        assert not bench.zookeeper.loses_next_reply(bench.process("m1"))

    bench.run(main())


def test_held_connections_hang_until_the_attempt_times_out() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1")
        bench.zookeeper.hold_connections(bench.process("m1"))
        bench.zookeeper.break_connection(session.session_id)
        await session.events.get()
        began_us = bench.now_us
        waiting = session.exists("/")
        assert await outcome(waiting) == "ConnectionLoss"
        assert 3_000_000 <= bench.now_us - began_us <= 4_000_000  # the timeout, after a wait of 1 to 2 s
        await bench.sleep(1)
        assert bench.kinds()[-1] is TransactionKind.SESSION_CLOSED
        bench.zookeeper.release_connections(bench.process("m1"))
        assert (await session.events.get()).kind is SessionEventKind.EXPIRED

    bench.run(main())


def test_a_first_connection_can_be_held_too() -> None:
    bench = Bench()

    async def main() -> None:
        bench.zookeeper.factory(bench.process("m1"), "host-m1")
        bench.zookeeper.hold_connections(bench.process("m1"))
        session = bench.open("m1")
        waiting = session.exists("/")
        await bench.sleep(1)
        assert not waiting.done and bench.transactions == []
        bench.zookeeper.release_connections(bench.process("m1"))
        assert (await waiting).zxid == 1
        assert session.negotiated_timeout_ms == 2000

    bench.run(main())


def test_a_connection_under_way_when_its_process_pauses_is_not_forgotten() -> None:
    bench = Bench()

    async def main() -> None:
        session = bench.open("m1")
        bench.process("m1").pause()
        await bench.sleep(0.3)
        assert len(bench.zookeeper.living_sessions) == 1
        bench.process("m1").resume()
        await session.events.get()
        await bench.sleep(60)
        assert bench.zookeeper.living_sessions == (session.session_id,)  # a ping disarmed its expiry

    bench.run(main())


def test_a_kill_lets_what_was_sent_arrive() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1")
        session.create("/a", b"")
        bench.process("m1").kill()
        await bench.sleep(0.1)
        assert bench.kinds() == [TransactionKind.SESSION_OPENED, TransactionKind.CREATE]

    bench.run(main())


def test_loss_breaks_connections_and_the_session_goes_on() -> None:
    bench = Bench(network=NetworkSettings(loss=0.02))

    async def main() -> tuple[int, int]:
        session = bench.open("m1", 10_000)
        ok = lost = 0
        for number in range(400):
            result = await outcome(session.create(f"/{number}", b""))
            assert result in ("ok", "ConnectionLoss")
            ok, lost = ok + (result == "ok"), lost + (result != "ok")
        created = bench.kinds().count(TransactionKind.CREATE)
        assert ok <= created <= ok + lost
        return ok, lost

    ok, lost = bench.run(main())
    assert ok > 300 and 3 <= lost <= 60


def test_impossible_networks_are_refused() -> None:
    with pytest.raises(ValueError, match="latency_us"):
        NetworkSettings(latency_us=(5, 4))
    with pytest.raises(ValueError, match="loss"):
        NetworkSettings(loss=1.0)


def test_what_a_dead_client_sent_is_not_applied_after_its_session() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1")
        session.create("/a", b"")
        bench.process("m1").kill()
        bench.zookeeper.expire(session.session_id)
        await bench.sleep(5)
        assert bench.kinds() == [TransactionKind.SESSION_OPENED, TransactionKind.SESSION_CLOSED]

    bench.run(main())


def test_who_closes_at_the_loss_of_its_connection_is_closed() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1")
        pending = session.exists("/")

        def close(_reply: object) -> None:
            session.close()

        pending.on(close)
        bench.zookeeper.break_connection(session.session_id)
        assert await outcome(pending) == "ConnectionLoss"
        assert session.state is SessionState.CLOSED
        await bench.sleep(5)
        assert len(session.events) == 0 and bench.zookeeper.living_sessions == ()

    bench.run(main())


def test_a_close_is_done_when_its_connection_is_lost() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1")
        closed = session.close()
        bench.zookeeper.break_connection(session.session_id)
        await closed
        assert session.state is SessionState.CLOSED
        assert len(bench.zookeeper.living_sessions) == 1
        await bench.sleep(5)
        assert bench.zookeeper.living_sessions == ()

    bench.run(main())
