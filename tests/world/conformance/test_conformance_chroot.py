"""A session with a chroot sees one subtree as if it were everything."""

from __future__ import annotations

import pytest
from conformance_harness import Harness, also_kazoo

from rebalance_lab.world.errors import BadVersion, MultiRefused, NodeExists, NoNode
from rebalance_lab.world.ports import Check, ChildrenRead, Create, Delete, GetRead, Set, WatchKind


@also_kazoo
def test_paths_are_relative_to_the_chroot_both_ways(conform):
    async def story(h: Harness) -> None:
        whole, inside = await h.connected(), await h.connected(chroot=h.root)
        assert (await inside.create("/a", b"1")).value == "/a"
        assert (await inside.create("/a/s-", b"", sequence=True)).value == "/a/s-0000000000"
        assert (await inside.create("/e", b"", ephemeral=True)).value == "/e"
        assert (await inside.children("/a")).value.names == ("s-0000000000",)
        await inside.set("/a", b"2", version=0)
        assert (await whole.get(f"{h.root}/a")).value == (await inside.get("/a")).value
        assert (await whole.exists(f"{h.root}/e")).value.ephemeral_owner == inside.session_id
        await whole.create(f"{h.root}/from-outside", b"")
        await inside.delete("/from-outside")
        assert (await whole.children(h.root)).value.names == ("a", "e")

    conform(story)


@also_kazoo
def test_the_root_of_the_session_is_the_chroot_itself(conform):
    async def story(h: Harness) -> None:
        whole, inside = await h.connected(), await h.connected(chroot=h.root)
        await whole.create(f"{h.root}/a", b"")
        assert (await inside.children("/")).value.names == ("a",)
        await inside.set("/", b"data of the root")
        assert (await whole.get(h.root)).value.data == (await inside.get("/")).value.data == b"data of the root"
        assert (await inside.exists("/")).value == (await whole.exists(h.root)).value

    conform(story)


def test_errors_name_the_path_as_it_was_asked(conform):
    async def story(h: Harness) -> None:
        session = await h.connected(chroot=h.root)
        await session.create("/a", b"")
        for asked, kind, path in (
            (session.get("/missing"), NoNode, "/missing"),
            (session.create("/a", b""), NodeExists, "/a"),
            (session.set("/a", b"", version=7), BadVersion, "/a"),
            (session.delete("/missing/child"), NoNode, "/missing/child"),
        ):
            with pytest.raises(kind) as caught:
                await asked
            assert caught.value.path == path
            assert h.root not in str(caught.value)

    conform(story)


@also_kazoo
def test_watch_events_name_the_path_as_it_was_watched(conform):
    async def story(h: Harness) -> None:
        whole, inside = await h.connected(), await h.connected(chroot=h.root)
        await whole.create(f"{h.root}/a", b"")
        root = (await inside.children("/", watch=True)).watch
        data = (await inside.get("/a", watch=True)).watch
        created = (await inside.exists("/b", watch=True)).watch
        await whole.set(f"{h.root}/a", b"1")
        await whole.create(f"{h.root}/b", b"")
        told = [(each.kind, each.path) for each in (await data, await created, await root)]
        assert told == [(WatchKind.CHANGED, "/a"), (WatchKind.CREATED, "/b"), (WatchKind.CHILD, "/")]

    conform(story)


def test_watches_behind_a_chroot_survive_a_reconnect(conform):
    async def story(h: Harness) -> None:
        whole, inside = await h.connected(), await h.connected(chroot=h.root)
        await whole.create(f"{h.root}/a", b"")
        watches = {
            "missed": (await inside.get("/a", watch=True)).watch,
            "root": (await inside.children("/", watch=True)).watch,
            "later": (await inside.exists("/b", watch=True)).watch,
        }
        await h.away(inside)
        await whole.set(f"{h.root}/a", b"1")
        await h.back(inside)
        await inside.exists("/")
        assert {name: each.result().path for name, each in watches.items() if each.done} == {"missed": "/a"}
        await whole.create(f"{h.root}/b", b"")
        await inside.exists("/")
        assert watches["later"].result().path == "/b"
        assert watches["root"].result().path == "/"

    conform(story)


def test_multi_and_multi_read_behind_a_chroot(conform):
    async def story(h: Harness) -> None:
        whole, inside = await h.connected(), await h.connected(chroot=h.root)
        done = await inside.multi(
            [Create("/a", b"1"), Create("/s-", b"", sequence=True), Set("/", b"2"), Check("/a", 0)]
        )
        assert done.value[:2] == ("/a", "/s-0000000001")
        assert (await whole.children(h.root)).value.names == ("a", "s-0000000001")
        found = (await inside.multi_read([GetRead("/"), ChildrenRead("/"), GetRead("/missing")])).value
        assert (found[0].data, found[1], found[2].path) == (b"2", ("a", "s-0000000001"), "/missing")
        with pytest.raises(MultiRefused) as caught:
            await inside.multi([Delete("/a"), Delete("/missing")])
        assert (caught.value.index, caught.value.path) == (1, "/missing")
        assert h.root not in str(caught.value)

    conform(story)


@also_kazoo
def test_a_chroot_that_is_not_there(conform):
    """Nothing can be done below it; whoever may create its parents' children can create it."""

    async def story(h: Harness) -> None:
        whole, inside = await h.connected(), await h.connected(chroot=f"{h.root}/not/there")
        for asked in (inside.get("/"), inside.children("/"), inside.create("/a", b""), inside.create("/", b"")):
            with pytest.raises(NoNode):
                await asked
        assert (await inside.exists("/")).value is None
        await whole.create(f"{h.root}/not", b"")
        if h.kind != "kazoo":  # which would call it the empty path
            assert (await inside.create("/", b"made")).value == "/"
            assert (await whole.get(f"{h.root}/not/there")).value.data == b"made"
            assert (await inside.create("/a", b"")).value == "/a"

    conform(story)


def test_a_neighbour_whose_name_begins_alike_is_another_znode(conform):
    async def story(h: Harness) -> None:
        whole = await h.connected()
        for name in ("x", "xy"):
            await whole.create(f"{h.root}/{name}", b"")
        inside = await h.connected(chroot=f"{h.root}/x")
        root = (await inside.children("/", watch=True)).watch
        await whole.create(f"{h.root}/xy/child", b"")
        await whole.set(f"{h.root}/xy", b"1")
        assert (await inside.children("/")).value.names == ()
        assert not root.done

    conform(story)


def test_a_lone_slash_is_no_chroot(conform):
    async def story(h: Harness) -> None:
        session = await h.connected(chroot="/")
        await session.create(f"{h.root}/a", b"")
        assert (await session.children(h.root)).value.names == ("a",)

    conform(story)
