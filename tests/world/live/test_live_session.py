"""Sessions on a real server, in fair weather; kazoo's client is the second opinion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_acl

from rebalance_lab.world import errors
from rebalance_lab.world.ports import SessionEventKind, SessionState, WatchKind
from rebalance_lab.world.zk.connect_string import BadConnectString


@pytest.fixture
def kazoo(bench: Any) -> Iterator[KazooClient]:
    client = KazooClient(bench.server.connect_string)
    client.start(timeout=60)
    yield client
    client.stop()
    client.close()


def test_a_session_from_opening_to_closing(bench: Any, kazoo: KazooClient) -> None:
    async def story() -> None:
        session = bench.factory.open(bench.server.connect_string, 5000)
        assert session.state is SessionState.CONNECTING
        assert session.session_id == 0
        await bench.seen(session, SessionEventKind.CONNECTED)
        assert session.state is SessionState.CONNECTED
        assert session.session_id != 0
        assert session.negotiated_timeout_ms == 5000
        await session.create(f"{bench.root}/e", b"", ephemeral=True)
        await session.close()
        assert session.state is SessionState.CLOSED
        assert len(session.events) == 0

    bench.run(story)
    assert kazoo.exists(f"{bench.root}/e") is None  # at once: the server was told


def test_the_server_bounds_the_timeout(bench: Any) -> None:
    async def story() -> tuple[int, int]:
        short, long = await bench.connected(timeout_ms=10), await bench.connected(timeout_ms=1_000_000)
        return short.negotiated_timeout_ms, long.negotiated_timeout_ms

    assert bench.run(story) == (1000, 10_000)  # 2 and 20 ticks of 500 ms


def test_operations_as_kazoo_sees_them(bench: Any, kazoo: KazooClient) -> None:
    root = bench.root

    async def story() -> None:
        session = await bench.connected()
        created = await session.create(f"{root}/a", b"one")
        assert created.value == f"{root}/a"
        node = await session.get(f"{root}/a")
        assert node.value.data == b"one"
        assert node.value.stat.czxid == node.value.stat.mzxid == created.zxid
        assert node.zxid >= created.zxid
        changed = await session.set(f"{root}/a", b"three", version=0)
        assert (changed.value.version, changed.value.data_length, changed.value.mzxid) == (1, 5, changed.zxid)
        first = await session.create(f"{root}/s-", b"", sequence=True)
        second = await session.create(f"{root}/s-", b"", ephemeral=True, sequence=True)
        assert (first.value, second.value) == (f"{root}/s-0000000001", f"{root}/s-0000000002")
        assert (await session.exists(second.value)).value.ephemeral_owner == session.session_id
        assert (await session.exists(f"{root}/missing")).value is None
        await session.delete(first.value, version=0)
        children = (await session.children(root)).value
        assert children.names == ("a", "s-0000000002")
        assert children.stat.num_children == 2
        data, stat = kazoo.get(f"{root}/a")
        theirs = (stat.czxid, stat.mzxid, stat.ctime, stat.mtime, stat.version, stat.cversion, stat.pzxid)
        ours = (await session.get(f"{root}/a")).value.stat
        assert data == b"three"
        assert theirs == (
            ours.czxid,
            ours.mzxid,
            ours.ctime_ms,
            ours.mtime_ms,
            ours.version,
            ours.cversion,
            ours.pzxid,
        )
        assert sorted(kazoo.get_children(root)) == list(children.names)

    bench.run(story)


def test_what_kazoo_writes_is_read(bench: Any, kazoo: KazooClient) -> None:
    kazoo.create(f"{bench.root}/ü", "Löwe".encode())
    kazoo.create(f"{bench.root}/null", None)  # as Kafka writes parents

    async def story() -> None:
        session = await bench.connected()
        assert (await session.children(bench.root)).value.names == ("null", "ü")
        assert (await session.get(f"{bench.root}/ü")).value.data.decode() == "Löwe"
        assert (await session.get(f"{bench.root}/null")).value.data == b""

    bench.run(story)


REFUSALS: dict[str, tuple[type[errors.ZooKeeperError], Callable[[Any, str], Any]]] = {
    "get of nothing": (errors.NoNode, lambda session, root: session.get(f"{root}/missing")),
    "children of nothing": (errors.NoNode, lambda session, root: session.children(f"{root}/missing", watch=True)),
    "set of nothing": (errors.NoNode, lambda session, root: session.set(f"{root}/missing", b"")),
    "delete of nothing": (errors.NoNode, lambda session, root: session.delete(f"{root}/missing")),
    "create under nothing": (errors.NoNode, lambda session, root: session.create(f"{root}/missing/x", b"")),
    "create again": (errors.NodeExists, lambda session, root: session.create(root, b"")),
    "set of another version": (errors.BadVersion, lambda session, root: session.set(root, b"", version=7)),
    "delete of another version": (errors.BadVersion, lambda session, root: session.delete(f"{root}/e", version=7)),
    "delete with children": (errors.NotEmpty, lambda session, root: session.delete(root)),
    "create under an ephemeral": (
        errors.NoChildrenForEphemerals,
        lambda session, root: session.create(f"{root}/e/x", b""),
    ),
    "a relative path": (errors.BadArguments, lambda session, _: session.create("nowhere", b"")),
    "no path": (errors.BadArguments, lambda session, _: session.get("")),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(bench: Any, case: str) -> None:
    expected, operation = REFUSALS[case]

    async def story() -> errors.ZooKeeperError:
        session = await bench.connected()
        await session.create(f"{bench.root}/e", b"", ephemeral=True)
        with pytest.raises(errors.ZooKeeperError) as caught:
            await operation(session, bench.root)
        assert session.state is SessionState.CONNECTED
        return caught.value

    error = bench.run(story)
    assert type(error) is expected
    assert f"{error.session_id:#x}" in str(error)
    assert error.zxid > 0 or case == "no path"


def test_what_the_acl_forbids(bench: Any, kazoo: KazooClient) -> None:
    kazoo.create(f"{bench.root}/locked", b"", acl=[make_acl("ip", "192.0.2.1", all=True)])

    async def story() -> None:
        session = await bench.connected()
        with pytest.raises(errors.NoAuth):
            await session.get(f"{bench.root}/locked")

    bench.run(story)


# -- watches ------------------------------------------------------------------------------------


def test_every_watch_fires_once_with_its_kind(bench: Any, kazoo: KazooClient) -> None:
    path = f"{bench.root}/n"

    async def story() -> None:
        session = await bench.connected()
        created = (await session.exists(path, watch=True)).watch
        kazoo.create(path, b"")
        assert (await created).kind is WatchKind.CREATED
        data = (await session.get(path, watch=True)).watch
        assert (await session.exists(path, watch=True)).watch is data  # both wait for the same
        kazoo.set(path, b"x")
        assert (await data).kind is WatchKind.CHANGED
        child = (await session.children(path, watch=True)).watch
        kazoo.create(f"{path}/c", b"")
        event = await child
        assert (event.kind, event.path) == (WatchKind.CHILD, path)
        kazoo.delete(f"{path}/c")
        data, child = (await session.get(path, watch=True)).watch, (await session.children(path, watch=True)).watch
        assert data is not child
        kazoo.delete(path)
        assert (await data).kind is WatchKind.DELETED
        assert (await child).kind is WatchKind.DELETED
        missing = await session.exists(path, watch=True)
        assert missing.value is None
        kazoo.create(path, b"")
        assert (await missing.watch).kind is WatchKind.CREATED

    bench.run(story)


def test_a_watch_comes_before_the_data_that_fired_it(bench: Any) -> None:
    """A read that shows a change is answered after the watch of that change, however the two
    race: both travel on one wire, and are handled in its order."""

    async def story() -> int:
        reader, writer = await bench.connected(), await bench.connected()
        seen = 0
        for round_ in range(50):
            before = await reader.children(bench.root, watch=True)
            write = writer.create(f"{bench.root}/{round_:03}", b"")
            while True:
                after = await reader.children(bench.root)
                if after.value != before.value:
                    assert before.watch.done
                    assert before.watch.result().zxid < after.zxid
                    seen += 1
                    break
            await write
        return seen

    assert bench.run(story) == 50


def test_a_failed_read_leaves_no_watch(bench: Any) -> None:
    async def story() -> None:
        session = await bench.connected()
        with pytest.raises(errors.NoNode):
            await session.get(f"{bench.root}/later", watch=True)
        await session.create(f"{bench.root}/later", b"")
        assert (await session.get(f"{bench.root}/later", watch=True)).watch.done is False

    bench.run(story)


# -- many at once -------------------------------------------------------------------------------


def test_requests_of_one_turn_are_answered_in_order(bench: Any) -> None:
    async def story() -> None:
        session = await bench.connected()
        order: list[int] = []
        writes = [session.set(bench.root, b"%d" % number) for number in range(500)]
        for number, write in enumerate(writes):
            write.on(lambda _, number=number: order.append(number))
        read = session.get(bench.root)
        assert (await read).value.data == b"499"
        assert order == list(range(500))
        assert [write.result().value.version for write in writes] == list(range(1, 501))
        zxids = [write.result().zxid for write in writes]
        assert zxids == sorted(set(zxids))

    bench.run(story)


def test_an_answer_larger_than_any_read(bench: Any) -> None:
    """900 KB of data, and children names of 600 KB, come in many pieces."""
    names = [f"{number:04}-{'x' * 290}" for number in range(2000)]

    async def story() -> None:
        session = await bench.connected()
        big = bytes(range(256)) * 3600
        await session.set(bench.root, big)
        for write in [session.create(f"{bench.root}/{name}", b"") for name in names]:
            await write
        children, node = session.children(bench.root), session.get(bench.root)
        assert (await children).value.names == tuple(names)
        assert (await node).value.data == big

    bench.run(story)


# -- ends ---------------------------------------------------------------------------------------


def test_after_close_nothing_is_accepted(bench: Any) -> None:
    async def story() -> None:
        session = await bench.connected()
        watch = (await session.get(bench.root, watch=True)).watch
        before, closed = session.get(bench.root), session.close()
        late = session.get(bench.root)
        assert session.close() is closed
        await closed
        assert before.result().value.data == b""  # asked for before: answered
        for future in (late, session.get(bench.root), watch):
            with pytest.raises(errors.SessionClosed):
                await future
        await session.close()  # again is harmless

    bench.run(story)


def test_a_session_closed_before_it_connected(bench: Any) -> None:
    """The attempt under way is finished, so that no session stays behind at the server."""

    async def story() -> None:
        session = bench.factory.open(bench.server.connect_string, 5000)
        read = session.get(bench.root)
        await session.close()
        assert session.state is SessionState.CLOSED
        assert (await read).value.data == b""

    bench.run(story)


def test_a_bad_connect_string_and_a_bad_timeout_are_refused(bench: Any) -> None:
    with pytest.raises(BadConnectString, match="ends with a slash"):
        bench.factory.open(f"{bench.server.connect_string}/kafka/", 5000)
    with pytest.raises(ValueError, match="timeout of 0 ms"):
        bench.factory.open(bench.server.connect_string, 0)


def test_the_next_server_of_the_list_is_tried(bench: Any) -> None:
    """Nobody listens on port 1; whatever the shuffle, the session finds the other."""

    async def story() -> None:
        connect = f"127.0.0.1:1,{bench.server.connect_string}"
        for session in [bench.factory.open(connect, 5000) for _ in range(4)]:
            await bench.seen(session, SessionEventKind.CONNECTED)
            assert session.last_loss == "" or session.last_loss.startswith("127.0.0.1:1: cannot connect")

    bench.run(story)
