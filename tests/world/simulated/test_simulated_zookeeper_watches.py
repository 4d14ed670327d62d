"""Watches: one shot, in Java's tables, before the data that fired them, and over a reconnect."""

from __future__ import annotations

import pytest
from simulated_bench import Bench, outcome

from rebalance_lab.kernel import Future
from rebalance_lab.world.ports import Reply, WatchEvent, WatchKind


def watch_of(reply: Reply[object]) -> Future[WatchEvent]:
    assert reply.watch is not None
    return reply.watch


def test_each_change_fires_the_watches_javas_client_would() -> None:
    bench = Bench()

    async def main() -> None:
        session, other = await bench.connected("m1"), await bench.connected("m2")
        missing = watch_of(await session.exists("/a", watch=True))
        root = watch_of(await session.children("/", watch=True))
        await other.create("/a", b"")
        assert (await missing).kind is WatchKind.CREATED
        assert (await root) == WatchEvent(WatchKind.CHILD, "/", (await root).zxid)

        data = watch_of(await session.get("/a", watch=True))
        children = watch_of(await session.children("/a", watch=True))
        await other.create("/a/b", b"")
        assert (await children).kind is WatchKind.CHILD
        assert not data.done
        await other.set("/a", b"x")
        assert (await data).kind is WatchKind.CHANGED

    bench.run(main())


def test_a_deletion_ends_data_and_child_watches_with_one_event() -> None:
    bench = Bench()

    async def main() -> None:
        session, other = await bench.connected("m1"), await bench.connected("m2")
        await other.create("/a", b"")
        parent = watch_of(await session.children("/", watch=True))
        data = watch_of(await session.exists("/a", watch=True))  # there: a data watch
        child = watch_of(await session.children("/a", watch=True))
        await other.delete("/a")
        event = await data
        assert event.kind is WatchKind.DELETED and event.path == "/a"
        assert await child is event
        assert (await parent).kind is WatchKind.CHILD

    bench.run(main())


def test_a_watch_fires_once_and_is_shared_by_table_and_path() -> None:
    bench = Bench()

    async def main() -> None:
        session, other = await bench.connected("m1"), await bench.connected("m2")
        await other.create("/a", b"")
        by_get = watch_of(await session.get("/a", watch=True))
        by_exists = watch_of(await session.exists("/a", watch=True))
        by_children = watch_of(await session.children("/a", watch=True))
        assert by_get is by_exists and by_get is not by_children
        assert (await session.get("/a")).watch is None
        await other.set("/a", b"1")
        await by_get
        again = watch_of(await session.get("/a", watch=True))
        assert again is not by_get and not again.done
        await other.set("/a", b"2")
        await again
        await other.set("/a", b"3")
        assert len(bench.server.watches.data) == 0
        assert await outcome(session.get("/no", watch=True)) == "NoNode"
        assert len(bench.server.watches.data) == 0  # only exists arms one on what is not there

    bench.run(main())


@pytest.mark.parametrize("seed", range(20))
def test_a_watch_comes_before_the_data_that_fired_it(seed: int) -> None:
    """Whenever a read shows a change, the watch the change fired is done; the writer's own too."""
    bench = Bench(seed)

    async def main() -> None:
        reader, writer = await bench.connected("m1"), await bench.connected("m2")
        await writer.create("/a", b"0")
        own = watch_of(await writer.get("/a", watch=True))
        watch = watch_of(await reader.get("/a", watch=True))
        write = writer.set("/a", b"1")
        while (await reader.get("/a")).value.data == b"0":
            assert not watch.done
        assert watch.done and watch.result().kind is WatchKind.CHANGED
        await write
        assert own.done

    bench.run(main())


def test_set_watches_fires_what_changed_meanwhile_and_arms_the_rest() -> None:
    bench = Bench()

    async def main() -> None:
        session, other = await bench.connected("m1"), await bench.connected("m2")
        for name in ("gone", "changed", "parent", "kept", "kept-parent", "gone-parent"):
            await other.create(f"/{name}", b"")
        watches = {name: watch_of(await session.get(f"/{name}", watch=True)) for name in ("gone", "changed", "kept")}
        for name in ("parent", "kept-parent", "gone-parent"):
            watches[name] = watch_of(await session.children(f"/{name}", watch=True))
        for name in ("created", "still-missing"):
            watches[name] = watch_of(await session.exists(f"/{name}", watch=True))

        bench.zookeeper.hold_connections(bench.process("m1"))
        assert bench.zookeeper.break_connection(session.session_id)
        await session.events.get()
        await other.delete("/gone")
        await other.set("/changed", b"x")
        await other.create("/parent/child", b"")
        await other.delete("/gone-parent")
        await other.create("/created", b"")
        assert [name for name, watch in watches.items() if watch.done] == []

        bench.zookeeper.release_connections(bench.process("m1"))
        await session.events.get()
        await session.exists("/")
        fired = {name: watch.result().kind for name, watch in watches.items() if watch.done}
        assert fired == {
            "gone": WatchKind.DELETED,
            "changed": WatchKind.CHANGED,
            "parent": WatchKind.CHILD,
            "gone-parent": WatchKind.DELETED,
            "created": WatchKind.CREATED,
        }
        await other.set("/kept", b"x")
        await other.create("/kept-parent/child", b"")
        await other.create("/still-missing", b"")
        assert (await watches["kept"]).kind is WatchKind.CHANGED
        assert (await watches["kept-parent"]).kind is WatchKind.CHILD
        assert (await watches["still-missing"]).kind is WatchKind.CREATED

    bench.run(main())


def test_watches_of_a_broken_connection_leave_the_server() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1")
        await session.children("/", watch=True)
        await session.get("/", watch=True)
        watches = bench.server.watches
        assert (len(watches.child), len(watches.data)) == (1, 1)
        bench.process("m1").kill()
        await bench.sleep(0.01)
        assert (len(watches.child), len(watches.data)) == (0, 0)

    bench.run(main())
