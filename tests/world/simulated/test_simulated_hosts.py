"""Connect strings with several servers and a chroot."""

from __future__ import annotations

from itertools import pairwise

import pytest
from simulated_bench import SECOND, Bench, outcome

from rebalance_lab.world.errors import MultiRefused, NoNode
from rebalance_lab.world.ports import Check, ChildrenRead, Create, Delete, GetRead, Node, SessionEventKind, WatchKind
from rebalance_lab.world.simulated.server import ServerState
from rebalance_lab.world.simulated.settings import NetworkSettings, ServerSettings

THREE = ("z1", "z2", "z3")


def test_servers_are_tried_in_a_seeded_order_one_after_another() -> None:
    orders = set()
    for seed in range(30):
        bench = Bench(seed, servers=THREE)

        async def main(bench: Bench = bench) -> tuple[str | None, ...]:
            session = await bench.connected("m1", 10_000)
            seen = [bench.zookeeper.serving(session.session_id)]
            for _ in range(5):
                bench.zookeeper.break_connection(session.session_id)
                assert (await session.events.get()).kind is SessionEventKind.DISCONNECTED
                assert (await session.events.get()).kind is SessionEventKind.CONNECTED
                seen.append(bench.zookeeper.serving(session.session_id))
            return tuple(seen)

        seen = bench.run(main())
        assert seen[:3] == seen[3:] and all(one != other for one, other in pairwise(seen))
        orders.add(seen[:3])
    assert len(orders) == 6  # each order comes up
    assert bench.now_us < 10 * SECOND


def test_a_connection_that_a_server_accepted_makes_the_next_wait_a_random_time() -> None:
    """ClientCnxn's isFirstConnect: a server that does not serve yet accepts, one that is down does not."""
    for state, least_us in ((ServerState.DOWN, SECOND), (ServerState.LOOKING, SECOND + 1)):
        bench = Bench(network=NetworkSettings(latency_us=(0, 0)))

        async def main(bench: Bench = bench, state: ServerState = state, least_us: int = least_us) -> None:
            server = bench.server
            server.change(ServerState.DOWN)
            if state is ServerState.LOOKING:
                server.change(ServerState.LOOKING)
            session = bench.open("m1")
            await bench.sleep(0.5)
            if state is ServerState.DOWN:
                server.change(ServerState.LOOKING)
            server.change(ServerState.SERVING)
            await session.events.get()
            waited_us = bench.now_us
            assert waited_us == SECOND if state is ServerState.DOWN else least_us <= waited_us < 2 * SECOND

        bench.run(main())


def test_each_session_of_a_process_draws_its_own_order() -> None:
    bench = Bench(3, servers=THREE)

    async def main() -> None:
        first = [bench.zookeeper.serving((await bench.connected("m1", 10_000)).session_id) for _ in range(12)]
        assert sorted(set(first), key=str) == list(THREE)

    bench.run(main())


def test_an_attempt_has_its_part_of_the_session_timeout() -> None:
    bench = Bench(servers=THREE, settings=ServerSettings(sync_limit_ticks=1000))

    async def main() -> None:
        bench.zookeeper.pause_server("z1")
        began_us = bench.now_us
        session = bench.open("m1", 3000, "z1,z1,z1")  # all three hang
        asked = session.exists("/")
        assert await outcome(asked) == "ConnectionLoss"
        assert bench.now_us - began_us == SECOND
        await bench.sleep(1)

    bench.run(main())


def test_paths_are_relative_to_the_chroot() -> None:
    bench = Bench()

    async def main() -> None:
        whole = await bench.connected("m1")
        await whole.create("/kafka", b"root")
        session = await bench.connected("m2", connect="simulated:2181/kafka")
        assert (await session.get("/")).value.data == b"root"
        assert (await session.create("/a", b"x")).value == "/a"
        assert (await session.create("/a/s-", b"", sequence=True, ephemeral=True)).value == "/a/s-0000000000"
        assert (await whole.get("/kafka/a")).value.data == b"x"
        assert (await session.children("/")).value.names == ("a",)
        with pytest.raises(NoNode) as missing:
            await session.get("/b")
        assert missing.value.path == "/b"
        assert await outcome(session.get("a")) == "BadArguments"
        assert bench.transactions[-1].path == "/kafka/a/s-0000000000"

    bench.run(main())


def test_watch_events_are_relative_to_the_chroot_also_after_a_reconnect() -> None:
    bench = Bench()

    async def main() -> None:
        whole = await bench.connected("m1")
        await whole.create("/kafka", b"")
        session = await bench.connected("m2", connect="z1:2181/kafka")
        root = (await session.children("/", watch=True)).watch
        born = (await session.exists("/b", watch=True)).watch
        assert root is not None and born is not None
        await whole.create("/kafka/a", b"")
        assert ((await root).kind, (await root).path) == (WatchKind.CHILD, "/")
        data = (await session.get("/a", watch=True)).watch
        bench.zookeeper.break_connection(session.session_id)
        await whole.set("/kafka/a", b"1")
        await whole.create("/kafka/b", b"")
        assert data is not None
        assert [((await each).kind, (await each).path) for each in (data, born)] == [
            (WatchKind.CHANGED, "/a"),
            (WatchKind.CREATED, "/b"),
        ]

    bench.run(main())


def test_many_operations_are_relative_to_the_chroot() -> None:
    bench = Bench()

    async def main() -> None:
        whole = await bench.connected("m1")
        await whole.create("/kafka", b"")
        session = await bench.connected("m2", connect="z1/kafka")
        done = (await session.multi([Create("/a", b"x"), Create("/s-", b"", sequence=True), Check("/", 0)])).value
        assert done == ("/a", "/s-0000000001", None)
        with pytest.raises(MultiRefused) as refused:
            await session.multi([Create("/b", b""), Delete("/no")])
        assert (refused.value.index, refused.value.reason.path) == (1, "/no")
        node, names, missing = (await session.multi_read([GetRead("/a"), ChildrenRead("/"), GetRead("/b")])).value
        assert isinstance(node, Node) and node.data == b"x"
        assert names == ("a", "s-0000000001")
        assert isinstance(missing, NoNode) and missing.path == "/b"

    bench.run(main())


def test_a_chroot_that_is_missing_is_made_like_any_znode() -> None:
    bench = Bench()

    async def main() -> None:
        session = await bench.connected("m1", connect="z1/kafka")
        assert await outcome(session.create("/a", b"")) == "NoNode"
        assert (await session.exists("/")).value is None
        assert (await session.create("/", b"")).value == "/"
        assert (await session.create("/a", b"")).value == "/a"
        assert [each.path for each in bench.transactions[-2:]] == ["/kafka", "/kafka/a"]

    bench.run(main())
