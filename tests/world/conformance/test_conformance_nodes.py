"""Znodes: data, stats, versions, sequence numbers, children, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from conformance_harness import Harness, also_kazoo

from rebalance_lab.kernel import Future
from rebalance_lab.world import errors
from rebalance_lab.world.errors import BadArguments, BadVersion, NodeExists, NoNode, NotEmpty


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)), b"k" * 100_000], ids=["none", "one", "all", "large"])
@also_kazoo
def test_data_comes_back_as_it_was(conform, data: bytes):
    async def story(h: Harness) -> None:
        session = await h.connected()
        path = f"{h.root}/n"
        await session.create(path, data)
        node = (await session.get(path)).value
        assert node.data == data
        assert node.stat.data_length == len(data)
        await session.set(path, b"other")
        await session.set(path, data)
        assert (await session.get(path)).value.data == data

    conform(story)


def test_the_stat_of_a_znode_tells_its_life(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        path = f"{h.root}/n"
        born = (await session.create(path, b"12")).zxid
        stat = (await session.get(path)).value.stat
        assert (stat.czxid, stat.mzxid, stat.pzxid) == (born, born, born)
        assert (stat.version, stat.cversion, stat.aversion) == (0, 0, 0)
        assert (stat.data_length, stat.num_children, stat.ephemeral_owner) == (2, 0, 0)
        assert stat.ctime_ms == stat.mtime_ms > 1_400_000_000_000

        await h.sleep_ms(3)
        changed = await session.set(path, b"123")
        stat = changed.value
        assert (stat.czxid, stat.mzxid, stat.pzxid) == (born, changed.zxid, born)
        assert (stat.version, stat.data_length) == (1, 3)
        assert stat.mtime_ms > stat.ctime_ms
        assert (await session.exists(path)).value == (await session.get(path)).value.stat == stat

        first = (await session.create(f"{path}/a", b"")).zxid
        second = (await session.create(f"{path}/b", b"")).zxid
        grown = (await session.exists(path)).value
        assert (grown.czxid, grown.mzxid, grown.pzxid) == (born, changed.zxid, second)
        assert (grown.version, grown.cversion, grown.num_children) == (1, 2, 2)
        assert first < second

        gone = (await session.delete(f"{path}/a")).zxid
        shrunk = (await session.exists(path)).value
        assert (shrunk.pzxid, shrunk.cversion, shrunk.num_children) == (gone, 3, 1)
        assert (await session.children(path)).value.stat == shrunk

        await session.set(f"{path}/b", b"a child's data")
        assert (await session.exists(path)).value == shrunk

    conform(story)


@also_kazoo
def test_an_ephemeral_znode_names_its_owner(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        await session.create(f"{h.root}/e", b"", ephemeral=True)
        assert (await session.exists(f"{h.root}/e")).value.ephemeral_owner == session.session_id

    conform(story)


def test_a_new_life_of_a_path_begins_anew(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        path = f"{h.root}/n"
        await session.create(path, b"1")
        await session.set(path, b"2")
        await session.delete(path)
        reborn = (await session.create(path, b"3")).zxid
        stat = (await session.exists(path)).value
        assert (stat.czxid, stat.version, stat.data_length) == (reborn, 0, 1)

    conform(story)


@also_kazoo
def test_versions_guard_set_and_delete(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        path = f"{h.root}/n"
        await session.create(path, b"0")
        assert (await session.set(path, b"1", version=0)).value.version == 1
        for refused in (
            session.set(path, b"x", version=0),
            session.set(path, b"x", version=2),
            session.delete(path, version=0),
        ):
            with pytest.raises(BadVersion):
                await refused
        assert (await session.set(path, b"2")).value.version == 2
        assert (await session.get(path)).value.data == b"2"
        await session.delete(path, version=2)
        assert (await session.exists(path)).value is None

    conform(story)


@also_kazoo
def test_sequence_numbers_count_the_children_a_parent_ever_had(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        prefix = f"{h.root}/n-"
        assert (await session.create(prefix, b"", sequence=True)).value == f"{prefix}0000000000"
        assert (await session.create(f"{h.root}/plain", b"")).value == f"{h.root}/plain"
        ephemeral = await session.create(prefix, b"", sequence=True, ephemeral=True)
        assert ephemeral.value == f"{prefix}0000000002"
        assert (await session.exists(ephemeral.value)).value.ephemeral_owner == session.session_id
        await session.delete(ephemeral.value)
        assert (await session.create(f"{h.root}/m", b"", sequence=True)).value == f"{h.root}/m0000000003"
        assert (await session.create(f"{h.root}/", b"", sequence=True)).value == f"{h.root}/0000000004"
        with pytest.raises(NodeExists):
            await session.create(f"{h.root}/plain", b"")
        after = await session.create(prefix, b"", sequence=True)
        assert after.value == f"{prefix}0000000005", "a refused create takes no number"

    conform(story)


@also_kazoo
def test_children_are_sorted_names(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        for name in ("b", "B", "a10", "a2", "ä", "a", "_", "0"):
            await session.create(f"{h.root}/{name}", b"")
        await session.create(f"{h.root}/a/deeper", b"")
        children = (await session.children(h.root)).value
        assert children.names == ("0", "B", "_", "a", "a10", "a2", "b", "ä")
        assert children.stat.num_children == 8
        assert (await session.children(f"{h.root}/a/deeper")).value.names == ()

    conform(story)


@also_kazoo
def test_what_is_refused_says_so(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        node, ephemeral, missing = (f"{h.root}/{name}" for name in ("node", "ephemeral", "missing"))
        await session.create(node, b"")
        await session.create(f"{node}/child", b"")
        await session.create(ephemeral, b"", ephemeral=True)
        refused: list[tuple[type[errors.ZooKeeperError], str, str, Future[Any]]] = [
            (NodeExists, "create", node, session.create(node, b"")),
            (NodeExists, "create", ephemeral, session.create(ephemeral, b"", ephemeral=True)),
            (NoNode, "create", f"{missing}/child", session.create(f"{missing}/child", b"")),
            (NoNode, "create", f"{missing}/child-", session.create(f"{missing}/child-", b"", sequence=True)),
            (errors.NoChildrenForEphemerals, "create", f"{ephemeral}/c", session.create(f"{ephemeral}/c", b"")),
            (NoNode, "get", missing, session.get(missing)),
            (NoNode, "get", missing, session.get(missing, watch=True)),
            (NoNode, "children", missing, session.children(missing, watch=True)),
            (NoNode, "set", missing, session.set(missing, b"")),
            (NoNode, "set", missing, session.set(missing, b"", version=3)),
            (NoNode, "delete", missing, session.delete(missing)),
            (NotEmpty, "delete", node, session.delete(node)),
            (BadVersion, "delete", node, session.delete(node, version=7)),
        ]
        for kind, operation, path, future in refused:
            with pytest.raises(kind) as caught:
                await future
            error = caught.value
            assert (error.operation, error.path, error.code) == (operation, path, kind.code)
            if h.kind != "kazoo":  # its client shows no zxid of a reply
                assert error.zxid > 0
                assert error.session_id == session.session_id
        assert (await session.exists(missing)).value is None

    conform(story)


STRANGE_BUT_FINE = ["x y", "...", ".x", "x..", "\xa0", "é", "日本", "\ud7ff", "\uf900", "\uffef"]
BAD_CHARACTERS = ["\x01", "\x1f", "\x7f", "\x85", "\x9f", "\ue000", "\uf8ff", "\ufff0", "\uffff", "\U0001f600"]
#: What is no path -> the error of create, of delete, and of a sequential create (None: it has become
#: a path by its number). The server looks for a parent first, and checks no path that it reads.
NO_PATHS: dict[str, tuple[type[Exception], type[Exception], type[Exception] | None]] = {
    "/": (NoNode, NoNode, NoNode),
    "/x": (NoNode, NoNode, NoNode),
    "x/": (BadArguments, NoNode, None),
    "x//y": (NoNode, NoNode, NoNode),
    ".": (BadArguments, NoNode, None),
    "..": (BadArguments, NoNode, None),
    "x/./y": (NoNode, NoNode, NoNode),
    "x/../y": (NoNode, NoNode, NoNode),
    "x\0y": (BadArguments, BadArguments, BadArguments),
    **{f"x{each}y": (BadArguments, NoNode, BadArguments) for each in BAD_CHARACTERS},
}


@pytest.mark.parametrize("name", STRANGE_BUT_FINE, ids=ascii)
def test_paths_may_be_strange(conform, name: str):
    async def story(h: Harness) -> None:
        session = await h.connected()
        path = f"{h.root}/{name}"
        assert (await session.create(path, b"1")).value == path
        assert (await session.children(h.root)).value.names == (name,)
        assert (await session.set(path, b"2")).value.version == 1
        await session.delete(path)

    conform(story)


@pytest.mark.parametrize("name", NO_PATHS, ids=ascii)
def test_what_is_no_path_is_refused(conform, name: str):
    async def story(h: Harness) -> None:
        session = await h.connected()
        await session.create(f"{h.root}/x", b"")
        path = f"{h.root}/{name}"
        created, deleted, sequential = NO_PATHS[name]
        with pytest.raises(created):
            await session.create(path, b"")
        with pytest.raises(BadArguments):
            await session.set(path, b"")
        with pytest.raises(deleted):
            await session.delete(path)
        for read in (session.get(path), session.children(path)):
            with pytest.raises(NoNode):
                await read
        if name == "x\0y":
            with pytest.raises(BadArguments):
                await session.exists(path)
        else:
            assert (await session.exists(path)).value is None
        assert (await session.children(h.root)).value.names == ("x",)
        if sequential is None:
            assert (await session.create(path, b"", sequence=True)).value[: len(path)] == path
        else:
            with pytest.raises(sequential):
                await session.create(path, b"", sequence=True)

    conform(story)


def test_relative_and_special_paths(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        for refused in (
            session.create("relative", b""),
            session.create("", b""),
            session.delete("/"),
            session.delete("/zookeeper"),
        ):
            with pytest.raises(BadArguments):
                await refused
        with pytest.raises(NodeExists):
            await session.create("/zookeeper", b"")
        assert "zookeeper" in (await session.children("/")).value.names

    conform(story)


def test_reading_a_path_that_cannot_be_finds_nothing(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        for path in (f"{h.root}/", "relative", f"{h.root}//x", f"{h.root}/../x"):
            assert (await session.exists(path)).value is None
            for refused in (session.get(path), session.children(path)):
                with pytest.raises(NoNode):
                    await refused

    conform(story)


def test_zxids_of_a_session_never_go_back(conform):
    async def story(h: Harness) -> None:
        session, other = await h.connected(), await h.connected()
        writes: list[int] = []
        seen: list[int] = []
        for n in range(10):
            for future, wrote in (
                (session.create(f"{h.root}/{n}", b""), True),
                (session.get(h.root), False),
                (session.set(f"{h.root}/{n}", b"x"), True),
                (session.delete(f"{h.root}/{n}", version=9), True),  # refused: takes a zxid all the same
                (session.children(h.root), False),
            ):
                try:
                    zxid = (await future).zxid
                except BadVersion as refused:
                    zxid = refused.zxid
                seen.append(zxid)
                if wrote:
                    writes.append(zxid)
            await other.set(h.root, b"noise")
        assert seen == sorted(seen)
        assert len(set(writes)) == len(writes)

    conform(story)


def test_two_sessions_see_each_others_writes_after_one_of_their_own(conform):
    async def story(h: Harness) -> None:
        one, two = await h.connected(), await h.connected()
        for n in range(10):
            writer, reader = (one, two) if n % 2 else (two, one)
            written = (await writer.create(f"{h.root}/w{n}", b"%d" % n)).zxid
            own = (await reader.create(f"{h.root}/r{n}", b"")).zxid
            assert own > written
            node = await reader.get(f"{h.root}/w{n}")
            assert (node.value.data, node.value.stat.czxid) == (b"%d" % n, written)

    conform(story)


def test_pipelined_operations_happen_in_the_order_asked(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        path = f"{h.root}/n"
        done: list[int] = []
        futures: list[Future[Any]] = [
            session.create(path, b""),
            *(session.set(path, b"%d" % n, version=n) for n in range(50)),
        ]
        read = session.get(path)
        for n, future in enumerate(futures):
            future.on(lambda _, n=n: done.append(n))  # type: ignore[misc]
        assert (await read).value.data == b"49"
        assert done == list(range(51))
        assert (await read).value.stat.version == 50

    conform(story)
