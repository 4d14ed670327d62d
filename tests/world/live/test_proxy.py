"""The proxy: what it passes, cuts, turns away and swallows, and that its counters prove it."""

from __future__ import annotations

from typing import Any

import pytest

from rebalance_lab.world import errors
from rebalance_lab.world.ports import Create, Delete, SessionEventKind, SessionState, Set


def test_it_passes_everything_on(bench: Any) -> None:
    payload = bytes(range(256)) * 2000

    async def story() -> None:
        proxy = bench.proxy()
        session = await bench.connected(proxy.connect_string)
        await session.set(bench.root, payload)
        assert (await session.get(bench.root)).value.data == payload
        counters = proxy.counters
        assert counters.bytes_to_server > len(payload) < counters.bytes_to_client
        assert (counters.connections, proxy.open_connections) == (1, 1)
        assert (counters.cut, counters.refused, counters.replies_lost) == (0, 0, 0)
        await session.close()
        await bench.until(lambda: proxy.open_connections == 0)

    bench.run(story)


def test_cut_breaks_every_connection_once(bench: Any) -> None:
    async def story() -> None:
        proxy = bench.proxy()
        sessions = [await bench.connected(proxy.connect_string) for _ in range(3)]
        assert proxy.cut() == 3
        assert proxy.cut() == 0
        assert (proxy.counters.cut, proxy.open_connections) == (3, 0)
        for session in sessions:
            await bench.seen(session, SessionEventKind.DISCONNECTED)
        for session in sessions:
            await bench.seen(session, SessionEventKind.CONNECTED)
        assert proxy.counters.connections == 6

    bench.run(story)


def test_hold_turns_new_connections_away_and_lets_the_standing_go_on(bench: Any) -> None:
    async def story() -> None:
        proxy = bench.proxy()
        standing = await bench.connected(proxy.connect_string)
        proxy.hold()
        late = bench.factory.open(proxy.connect_string, 5000)
        await bench.until(lambda: proxy.counters.refused > 0)
        assert (await standing.get(bench.root)).value.data == b""
        assert late.state is SessionState.CONNECTING
        proxy.release()
        await bench.seen(late, SessionEventKind.CONNECTED)
        assert proxy.counters.connections == 2

    bench.run(story)


def test_the_next_reply_is_lost_and_nothing_else(bench: Any) -> None:
    """Pings, watch events, and the answers to a connect or to SetWatches pass; the write whose
    reply is lost is done."""

    async def story() -> None:
        proxy = bench.proxy()
        session, other = await bench.connected(proxy.connect_string, timeout_ms=1000), await bench.connected()
        watch = (await session.get(bench.root, watch=True)).watch
        kept = (await session.children(bench.root, watch=True)).watch
        lost = proxy.lose_next_reply()
        assert proxy.lose_next_reply() is lost
        proxy.cut()
        await bench.seen(session, SessionEventKind.DISCONNECTED)
        await bench.seen(session, SessionEventKind.CONNECTED)
        before = proxy.counters.bytes_to_client
        await other.set(bench.root, b"x")
        await watch
        await bench.until(lambda: proxy.counters.bytes_to_client - before > 200)  # many pings later
        assert not lost.done
        with pytest.raises(errors.ConnectionLoss):
            await session.create(f"{bench.root}/child", b"")
        assert await lost == 3
        assert (await other.exists(f"{bench.root}/child")).value is not None
        assert (await kept).path == bench.root  # told before the lost reply, or by SetWatches after it
        assert proxy.counters.replies_lost == 1
        await bench.seen(session, SessionEventKind.DISCONNECTED)
        await bench.seen(session, SessionEventKind.CONNECTED)
        await session.get(bench.root)  # one reply only

    bench.run(story)


def test_the_reply_to_a_create_in_some_place_is_lost_and_no_other(bench: Any) -> None:
    async def story() -> None:
        proxy = bench.proxy()
        session = await bench.connected(proxy.connect_string)
        lost = proxy.lose_next_reply("/owners/")
        await session.create(f"{bench.root}/owners", b"")
        await session.set(f"{bench.root}/owners", b"/owners/")
        await session.get(f"{bench.root}/owners")  # data that looks like it, and a Stat
        with pytest.raises(errors.NoNode):
            await session.create(f"{bench.root}/nowhere/owners/0", b"")
        assert not lost.done
        with pytest.raises(errors.ConnectionLoss):
            await session.create(f"{bench.root}/owners/0", b"")
        assert await lost == 5
        assert proxy.counters.replies_lost == 1
        assert (await session.exists(f"{bench.root}/owners/0")).value is not None

    bench.run(story)


def test_the_reply_to_a_multi_that_creates_in_some_place_is_lost_and_no_other(bench: Any) -> None:
    async def story() -> None:
        proxy = bench.proxy()
        session = await bench.connected(proxy.connect_string)
        root, lost = bench.root, proxy.lose_next_reply("/owners")
        await session.multi([Create(f"{root}/other", b"/owners"), Set(root, b"/owners")])
        await session.multi([Set(root, b"x"), Create(f"{root}/owners", b"")])
        await session.multi([Delete(f"{root}/owners")])
        assert not lost.done
        with pytest.raises(errors.ConnectionLoss):
            await session.multi([Create(f"{root}/owners", b""), Set(root, b"")])
        await lost
        assert (await session.exists(f"{root}/owners")).value is not None

    bench.run(story)


def test_replies_are_kept_again(bench: Any) -> None:
    async def story() -> None:
        proxy = bench.proxy()
        session = await bench.connected(proxy.connect_string)
        lost = proxy.lose_next_reply()
        proxy.keep_replies()
        await session.get(bench.root)
        assert not lost.done
        assert proxy.counters.replies_lost == 0

    bench.run(story)


def test_a_server_that_is_not_there(bench: Any) -> None:
    """The proxy accepts, finds nobody, and ends the connection."""

    async def story() -> None:
        proxy = bench.proxy()
        proxy.target = ("127.0.0.1", 1)
        session = bench.factory.open(proxy.connect_string, 5000)
        with pytest.raises(errors.ConnectionLoss):
            await session.get(bench.root)
        assert proxy.counters.connections == 1
        await bench.until(lambda: proxy.open_connections == 0)

    bench.run(story)


def test_closing_it_ends_what_it_carries(bench: Any) -> None:
    async def story() -> None:
        proxy = bench.proxy()
        connect = proxy.connect_string
        session = await bench.connected(connect)
        proxy.close()
        proxy.close()
        await bench.seen(session, SessionEventKind.DISCONNECTED)
        with pytest.raises(errors.ConnectionLoss):
            await session.get(bench.root)
        assert "cannot connect" in session.last_loss

    bench.run(story)
