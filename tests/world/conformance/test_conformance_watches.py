"""Watches: what fires them, once, in which order."""

from __future__ import annotations

from typing import Any

import pytest
from conformance_harness import Harness, also_kazoo

from rebalance_lab.kernel import Future
from rebalance_lab.world.errors import NoNode
from rebalance_lab.world.ports import WatchEvent, WatchKind, ZooKeeper

CREATED, DELETED, CHANGED, CHILD = WatchKind.CREATED, WatchKind.DELETED, WatchKind.CHANGED, WatchKind.CHILD


async def settled(session: ZooKeeper, h: Harness) -> None:
    """Every event of what has happened so far has come: it comes before this reply."""
    await session.exists(h.root)


def fired(watch: Future[WatchEvent]) -> tuple[WatchKind, str]:
    event = watch.result()
    return event.kind, event.path


@also_kazoo
def test_a_data_watch_fires_once(conform):
    async def story(h: Harness) -> None:
        watcher, writer = await h.connected(), await h.connected()
        path = f"{h.root}/n"
        await writer.create(path, b"")
        watch = (await watcher.get(path, watch=True)).watch
        await writer.set(path, b"1")
        assert (await watch).kind is CHANGED
        assert fired(watch) == (CHANGED, path)
        again = (await watcher.get(path, watch=True)).watch
        assert again is not watch and not again.done
        await writer.set(path, b"2")
        await writer.delete(path)
        assert fired(again) == (CHANGED, path) if again.done else (await again).kind is CHANGED

    conform(story)


@also_kazoo
def test_an_exists_watch_waits_for_a_missing_znode(conform):
    async def story(h: Harness) -> None:
        watcher, writer = await h.connected(), await h.connected()
        path = f"{h.root}/n"
        reply = await watcher.exists(path, watch=True)
        assert reply.value is None
        await writer.create(path, b"")
        assert (await reply.watch).kind is CREATED
        for change, kind in ((lambda: writer.set(path, b""), CHANGED), (lambda: writer.delete(path), DELETED)):
            reply = await watcher.exists(path, watch=True)
            assert reply.value is not None
            await change()
            assert (await reply.watch).kind is kind
            assert fired(reply.watch) == (kind, path)

    conform(story)


def test_a_child_watch_fires_for_children_only(conform):
    async def story(h: Harness) -> None:
        watcher, writer = await h.connected(), await h.connected()
        watch = (await watcher.children(h.root, watch=True)).watch
        await writer.set(h.root, b"data")
        await settled(watcher, h)
        assert not watch.done
        await writer.create(f"{h.root}/a", b"")
        assert (await watch).kind is CHILD
        assert fired(watch) == (CHILD, h.root)
        watch = (await watcher.children(h.root, watch=True)).watch
        await writer.create(f"{h.root}/a/b", b"")
        await writer.set(f"{h.root}/a", b"data")
        await settled(watcher, h)
        assert not watch.done
        await writer.delete(f"{h.root}/a/b")
        await writer.delete(f"{h.root}/a")
        assert (await watch).kind is CHILD

    conform(story)


def test_a_data_watch_does_not_fire_for_children(conform):
    async def story(h: Harness) -> None:
        watcher, writer = await h.connected(), await h.connected()
        watch = (await watcher.get(h.root, watch=True)).watch
        await writer.create(f"{h.root}/a", b"")
        await writer.delete(f"{h.root}/a")
        await settled(watcher, h)
        assert not watch.done

    conform(story)


def test_a_deletion_fires_data_and_child_watches_and_the_parents(conform):
    async def story(h: Harness) -> None:
        watcher, writer = await h.connected(), await h.connected()
        path = f"{h.root}/n"
        await writer.create(path, b"")
        data = (await watcher.get(path, watch=True)).watch
        child = (await watcher.children(path, watch=True)).watch
        parent = (await watcher.children(h.root, watch=True)).watch
        assert len({id(each) for each in (data, child, parent)}) == 3
        await writer.delete(path)
        await settled(watcher, h)
        assert [fired(each) for each in (data, child, parent)] == [(DELETED, path), (DELETED, path), (CHILD, h.root)]

    conform(story)


def test_a_refused_write_fires_nothing(conform):
    async def story(h: Harness) -> None:
        watcher, writer = await h.connected(), await h.connected()
        watches = [
            (await watcher.get(h.root, watch=True)).watch,
            (await watcher.children(h.root, watch=True)).watch,
            (await watcher.exists(f"{h.root}/missing/x", watch=True)).watch,
        ]
        for refused in (writer.set(h.root, b"", version=99), writer.create(f"{h.root}/missing/x", b"")):
            with pytest.raises(Exception, match=r"BadVersion|NoNode"):
                await refused
        await settled(watcher, h)
        assert not any(watch.done for watch in watches)

    conform(story)


def test_a_read_that_finds_no_znode_leaves_no_watch(conform):
    async def story(h: Harness) -> None:
        watcher, writer = await h.connected(), await h.connected()
        path = f"{h.root}/n"
        for refused in (watcher.get(path, watch=True), watcher.children(path, watch=True)):
            with pytest.raises(NoNode):
                await refused
        await writer.create(path, b"")
        watch = (await watcher.get(path, watch=True)).watch
        await settled(watcher, h)
        assert not watch.done

    conform(story)


def test_one_future_serves_all_who_watch_the_same_thing(conform):
    async def story(h: Harness) -> None:
        watcher, writer = await h.connected(), await h.connected()
        first = (await watcher.get(h.root, watch=True)).watch
        second = (await watcher.get(h.root, watch=True)).watch
        third = (await watcher.exists(h.root, watch=True)).watch
        child = (await watcher.children(h.root, watch=True)).watch
        assert first is second is third
        assert child is not first
        await writer.set(h.root, b"")
        await settled(watcher, h)
        assert fired(first) == (CHANGED, h.root)
        assert not child.done

    conform(story)


def test_watches_of_one_session_leave_anothers_alone(conform):
    async def story(h: Harness) -> None:
        one, two = await h.connected(), await h.connected()
        mine = (await one.get(h.root, watch=True)).watch
        theirs = (await two.get(h.root, watch=True)).watch
        await two.set(h.root, b"1")
        await settled(one, h)
        assert mine.done and theirs.done
        theirs = (await two.get(h.root, watch=True)).watch
        await two.close()
        await one.set(h.root, b"2")
        assert theirs.error is not None

    conform(story)


def test_own_writes_fire_own_watches_before_their_reply(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        order: list[str] = []
        watch = (await session.children(h.root, watch=True)).watch
        watch.on(lambda _: order.append("watch"))
        created = session.create(f"{h.root}/a", b"")
        created.on(lambda _: order.append("reply"))
        await created
        assert order == ["watch", "reply"]

    conform(story)


def test_a_reply_comes_after_every_watch_that_an_earlier_change_fired(conform):
    """The reader asks again and again while the writer writes: the first answer that shows the
    change comes after the watch that tells of it."""

    async def story(h: Harness) -> None:
        reader, writer = await h.connected(), await h.connected()
        order: list[str] = []

        def note(reply: Future[Any]) -> None:
            order.append("sees it" if "a" in reply.result().value.names else "not yet")

        watch = (await reader.children(h.root, watch=True)).watch
        watch.on(lambda _: order.append("watch"))
        written = writer.create(f"{h.root}/a", b"")
        while not written.done:
            asked = [reader.children(h.root) for _ in range(20)]
            for each in asked:
                each.on(note)
            await asked[-1]
        last = reader.children(h.root)
        last.on(note)
        await last
        told = order.index("watch")
        assert "sees it" not in order[:told]
        assert set(order[told + 1 :]) == {"sees it"}, "and the tree at the time of a reply is the one after its watches"

    conform(story)


def test_events_come_in_the_order_of_the_changes(conform):
    async def story(h: Harness) -> None:
        watcher, writer = await h.connected(), await h.connected()
        names = ["c", "a", "b", "e", "d"]
        order: list[str] = []
        for name in sorted(names):
            await writer.create(f"{h.root}/{name}", b"")
        for name in sorted(names):
            watch = (await watcher.get(f"{h.root}/{name}", watch=True)).watch
            watch.on(lambda each: order.append(each.result().path.rpartition("/")[2]))
        child = (await watcher.children(h.root, watch=True)).watch
        child.on(lambda _: order.append("children"))
        for name in names[:3]:
            writer.set(f"{h.root}/{name}", b"")
        writer.create(f"{h.root}/new", b"")
        last = [writer.set(f"{h.root}/{name}", b"") for name in names[3:]]
        await last[-1]
        await settled(watcher, h)
        assert order == ["c", "a", "b", "children", "e", "d"]

    conform(story)


def test_an_event_carries_the_last_zxid_its_session_had_seen(conform):
    async def story(h: Harness) -> None:
        watcher, writer = await h.connected(), await h.connected()
        reply = await watcher.get(h.root, watch=True)
        changed = await writer.set(h.root, b"")
        event = await reply.watch
        assert event.zxid == reply.zxid < changed.zxid
        assert (await watcher.get(h.root)).zxid >= changed.zxid

    conform(story)


def test_ephemerals_that_go_with_their_session_fire_watches(conform):
    async def story(h: Harness) -> None:
        watcher, owner = await h.connected(), await h.connected()
        paths = [f"{h.root}/{name}" for name in ("b", "a")]
        for path in paths:
            await owner.create(path, b"", ephemeral=True)
        watches = [(await watcher.exists(path, watch=True)).watch for path in paths]
        parent = (await watcher.children(h.root, watch=True)).watch
        await owner.close()
        await settled(watcher, h)
        assert [fired(watch) for watch in watches] == [(DELETED, path) for path in paths]
        assert fired(parent) == (CHILD, h.root)

    conform(story)
