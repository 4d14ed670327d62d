"""Silent directions: nothing passes, nobody is told, and the counters prove it."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from rebalance_lab.world import errors
from rebalance_lab.world.ports import SessionEventKind, WatchKind
from rebalance_lab.world.tcp import RETRY_DATA_US, RETRY_SYN_US


def test_both_ways_until_the_session_expires(bench: Any) -> None:
    """The client gives up by its read timeout, the server by the session's; neither was told
    by the connection."""
    path = f"{bench.root}/e"

    async def story() -> None:
        proxy = bench.proxy()
        session, other = await bench.connected(proxy.connect_string, timeout_ms=1500), await bench.connected()
        await session.create(path, b"", ephemeral=True)
        gone = (await other.exists(path, watch=True)).watch
        proxy.silence()
        lost = session.get(bench.root)
        await bench.seen(session, SessionEventKind.DISCONNECTED)
        assert "nothing heard for 1." in session.last_loss
        with pytest.raises(errors.ConnectionLoss):
            await lost
        assert proxy.open_connections == 1  # the server does not know yet
        assert not gone.done
        assert (await gone).kind is WatchKind.DELETED
        await bench.until(lambda: proxy.counters.unanswered > 0)
        assert len(session.events) == 0  # nobody could tell it
        counters = proxy.counters
        assert counters.stuck_to_server > 0
        assert counters.connections == 1
        assert (counters.refused, counters.cut) == (0, 0)
        proxy.heal()
        await bench.seen(session, SessionEventKind.EXPIRED)

    bench.run(story)


def test_to_the_client_only(bench: Any) -> None:
    """What it asks for is done, and it never hears of it."""
    path = f"{bench.root}/done"

    async def story() -> None:
        proxy = bench.proxy()
        session, other = await bench.connected(proxy.connect_string, timeout_ms=2000), await bench.connected()
        created = (await other.exists(path, watch=True)).watch
        proxy.silence(to_server=False)
        unheard = session.create(path, b"")
        assert (await created).kind is WatchKind.CREATED
        assert not unheard.done
        with pytest.raises(errors.ConnectionLoss):
            await unheard
        counters = proxy.counters
        assert (counters.stuck_to_server, counters.stuck_to_client > 0) == (0, True)
        await bench.until(lambda: proxy.open_connections == 0)  # the server heard that the client hung up
        proxy.heal()
        await bench.seen(session, SessionEventKind.DISCONNECTED)
        await bench.seen(session, SessionEventKind.CONNECTED)

    bench.run(story)


def test_to_the_server_only(bench: Any) -> None:
    """It still hears of changes; what it asks for is not done, until what it sent arrives: after the
    client gave it up (2.4 s) and before its session ends (3.6 s), as TCP sends it again after 3 s. A new
    connection would close the old one before that (ZooKeeperServer.reopenSession, 3.9.3)."""
    path = f"{bench.root}/undone"

    async def story() -> None:
        proxy = bench.proxy()
        session, other = await bench.connected(proxy.connect_string, timeout_ms=3600), await bench.connected()
        watch = (await session.get(bench.root, watch=True)).watch
        proxy.silence(to_client=False)
        unheard = session.create(path, b"")
        await other.set(bench.root, b"x")
        assert (await watch).kind is WatchKind.CHANGED
        with pytest.raises(errors.ConnectionLoss):
            await unheard
        late = await other.exists(path, watch=True)
        assert late.value is None
        counters = proxy.counters
        assert (counters.stuck_to_server > 0, counters.stuck_to_client) == (True, 0)
        assert proxy.open_connections == 1  # the server does not know yet
        proxy.hang()
        proxy.heal()
        assert (await late.watch).kind is WatchKind.CREATED
        await bench.until(lambda: proxy.open_connections == 0)
        proxy.release()
        await bench.seen(session, SessionEventKind.DISCONNECTED)
        await bench.seen(session, SessionEventKind.CONNECTED)
        assert proxy.open_connections == 1

    bench.run(story)


def test_a_silence_in_which_nobody_spoke_leaves_no_trace(bench: Any) -> None:
    async def story() -> None:
        proxy = bench.proxy()
        session = await bench.connected(proxy.connect_string, timeout_ms=10_000)
        proxy.silence()
        proxy.heal()
        assert (await session.get(bench.root)).value.data == b""
        assert len(session.events) == 0
        assert (proxy.counters.connections, proxy.open_connections) == (1, 1)

    bench.run(story)


def test_what_was_stuck_arrives_in_order_as_its_direction_opens(bench: Any) -> None:
    async def story() -> None:
        proxy = bench.proxy()
        session = await bench.connected(proxy.connect_string, timeout_ms=10_000)
        proxy.silence()
        asked = [session.create(f"{bench.root}/{n}", b"") for n in range(3)]
        await bench.until(lambda: proxy.counters.stuck_to_server > 0)
        proxy.silence(to_server=False)  # the server hears, and its answers are stuck
        await bench.until(lambda: proxy.counters.stuck_to_client > 0)
        assert not any(future.done for future in asked)
        proxy.heal()
        assert [(await future).value for future in asked] == [f"{bench.root}/{n}" for n in range(3)]
        assert len(session.events) == 0
        assert (proxy.counters.connections, proxy.counters.unanswered) == (1, 0)

    bench.run(story)


def test_what_was_lost_arrives_at_tcps_next_retransmission(bench: Any) -> None:
    """Healed after the first of them (0.2 s), it arrives at the second (0.6 s) or later, and what was
    asked after the heal does not overtake it."""

    async def story() -> None:
        proxy = bench.proxy()
        session = await bench.connected(proxy.connect_string, timeout_ms=10_000)
        began_us = bench.live.kernel.now_us()
        proxy.silence(to_client=False)
        asked = session.create(f"{bench.root}/lost", b"")
        await bench.until(lambda: proxy.counters.stuck_to_server > 0)
        await bench.live.kernel.sleep(RETRY_DATA_US)
        proxy.heal()
        followed = session.exists(f"{bench.root}/lost")
        await asked
        assert bench.live.kernel.now_us() - began_us >= 3 * RETRY_DATA_US
        assert (await followed).value is not None
        assert len(session.events) == 0

    bench.run(story)


def test_a_new_silence_before_the_retransmission_holds_it_back(bench: Any) -> None:
    async def story() -> None:
        proxy = bench.proxy()
        session = await bench.connected(proxy.connect_string, timeout_ms=10_000)
        proxy.silence()
        asked = session.create(f"{bench.root}/lost", b"")
        await bench.until(lambda: proxy.counters.stuck_to_server > 0)
        proxy.heal()
        proxy.silence()
        await bench.live.kernel.sleep(2 * RETRY_DATA_US)
        assert not asked.done
        proxy.heal()
        assert (await asked).value == f"{bench.root}/lost"

    bench.run(story)


def test_the_end_of_a_connection_is_lost_and_sent_again_too(bench: Any) -> None:
    async def story() -> None:
        proxy = bench.proxy()
        with socket.create_connection(("127.0.0.1", proxy.port)):
            await bench.until(lambda: proxy.joined_connections == 1)
            proxy.silence()
        began_us = bench.live.kernel.now_us()
        await bench.live.kernel.sleep(RETRY_DATA_US // 4)  # it hears of the end
        proxy.heal()
        assert proxy.open_connections == 1
        await bench.until(lambda: proxy.open_connections == 0)
        assert bench.live.kernel.now_us() - began_us >= RETRY_DATA_US

    bench.run(story)


def test_a_connection_attempt_gets_through_at_its_next_syn(bench: Any) -> None:
    async def story() -> None:
        proxy = bench.proxy()
        proxy.silence()
        began_us = bench.live.kernel.now_us()
        session = bench.factory.open(proxy.connect_string, 10_000)
        await bench.until(lambda: proxy.counters.unanswered == 1)
        proxy.heal()
        await bench.seen(session, SessionEventKind.CONNECTED)
        assert bench.live.kernel.now_us() - began_us >= RETRY_SYN_US
        assert (proxy.counters.connections, proxy.counters.unanswered) == (1, 1)

    bench.run(story)


@pytest.mark.parametrize("how", ["silence", "hang"])
def test_new_connections_wait_and_those_that_gave_up_never_were(bench: Any, how: str) -> None:
    async def story() -> None:
        proxy = bench.proxy()
        end = proxy.heal if how == "silence" else proxy.release
        getattr(proxy, how)()
        with socket.create_connection(("127.0.0.1", proxy.port)) as gave_up:
            gave_up.sendall(b"I am")
        waits = bench.factory.open(proxy.connect_string, 10_000)
        await bench.until(lambda: proxy.counters.unanswered == 2)
        assert (proxy.counters.connections, proxy.open_connections) == (0, 0)
        end()
        await bench.seen(waits, SessionEventKind.CONNECTED)
        assert (proxy.counters.connections, proxy.counters.refused) == (1, 0)

    bench.run(story)


def test_closing_it_ends_those_that_wait(bench: Any) -> None:
    async def story() -> None:
        proxy = bench.proxy()
        proxy.silence(to_server=False)
        session = bench.factory.open(proxy.connect_string, 10_000)
        await bench.until(lambda: proxy.counters.unanswered == 1)
        proxy.close()
        with pytest.raises(errors.ConnectionLoss):
            await session.get(bench.root)

    bench.run(story)
