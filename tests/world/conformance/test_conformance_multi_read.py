"""multi_read: many reads in one request, each with its own result."""

from __future__ import annotations

import pytest
from conformance_harness import Harness

from rebalance_lab.world.errors import BadArguments, ConnectionLoss, NoNode, SessionExpired
from rebalance_lab.world.ports import ChildrenRead, Create, Delete, GetRead, Node, ReadOperation, SessionEventKind


def test_each_read_has_its_own_result_in_its_place(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        for name, data in (("b", b"1"), ("a", b"22"), ("a/y", b""), ("a/x", b"")):
            await session.create(f"{h.root}/{name}", data)
        reads: list[ReadOperation] = [
            GetRead(f"{h.root}/b"),
            ChildrenRead(f"{h.root}/a"),
            GetRead(f"{h.root}/missing"),
            ChildrenRead(f"{h.root}/missing"),
            GetRead(f"{h.root}/a"),
            ChildrenRead(f"{h.root}/b"),
            GetRead(f"{h.root}/b"),
        ]
        reply = await session.multi_read(reads)
        b, children, no_data, no_children, a, none, again = reply.value
        assert b == again == (await session.get(f"{h.root}/b")).value
        assert a == (await session.get(f"{h.root}/a")).value
        assert isinstance(a, Node)
        assert (a.data, a.stat.num_children) == (b"22", 2)
        assert (children, none) == (("x", "y"), ())
        for error, operation in ((no_data, "get"), (no_children, "children")):
            assert type(error) is NoNode
            assert (error.path, error.zxid, error.session_id) == (f"{h.root}/missing", reply.zxid, session.session_id)
            assert error.operation == operation
        assert reply.watch is None

    conform(story)


def test_its_zxid_is_that_of_the_state_it_shows(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        changed = await session.create(f"{h.root}/n", b"1")
        reply = await session.multi_read([GetRead(f"{h.root}/n")])
        assert reply.zxid == changed.zxid == reply.value[0].stat.mzxid
        assert not [txn for txn in h.transactions() if txn.zxid > changed.zxid], "a read is no transaction"

    conform(story)


def test_it_is_one_moment(conform):
    """Whoever reads while others write finds all of a transaction or nothing of it."""

    async def story(h: Harness) -> None:
        reader, writer = await h.connected(), await h.connected()
        pair = [f"{h.root}/a", f"{h.root}/b"]
        seen: list[tuple[bool, ...]] = []
        for _ in range(5):
            made = writer.multi([Create(path, b"") for path in pair])
            gone = writer.multi([Delete(path) for path in pair])
            while not gone.done:
                reply = await reader.multi_read([GetRead(path) for path in pair])
                seen.append(tuple(isinstance(result, Node) for result in reply.value))
            await made
        assert set(seen) <= {(False, False), (True, True)}

    conform(story)


def test_nothing_to_read_is_an_answer_too(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        assert (await session.multi_read([])).value == ()
        assert (await session.multi_read([GetRead(h.root)])).value[0].data == b""

    conform(story)


def test_reads_that_cannot_be_asked_do_not_concern_the_others(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        reads: list[ReadOperation] = [GetRead(""), GetRead(h.root), ChildrenRead("")]
        first, root, last = (await session.multi_read(reads)).value
        assert isinstance(root, Node)
        for error, operation in ((first, "get"), (last, "children")):
            assert type(error) is BadArguments
            assert (error.operation, error.path) == (operation, "")

    conform(story)


def test_there_may_be_very_many(conform):
    """More than one request can hold, of a thousand reads or a megabyte."""

    async def story(h: Harness) -> None:
        session = await h.connected()
        names = [f"{h.root}/{'n' * 60}{number:02}" for number in range(20)]
        for number, path in enumerate(names):
            await session.create(path, b"%d" % number)
        asked = [number % 21 for number in range(16_000)]
        reads = [GetRead(names[number] if number < 20 else f"{h.root}/missing") for number in asked]
        assert sum(len(read.path) for read in reads) > 1 << 20
        found = (await session.multi_read(reads)).value
        assert len(found) == len(reads)
        for number, result in zip(asked, found, strict=True):
            assert isinstance(result, NoNode) if number == 20 else result.data == b"%d" % number

    conform(story)


def test_it_sees_what_its_session_wrote_before(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        written = session.create(f"{h.root}/n", b"1")
        read = session.multi_read([GetRead(f"{h.root}/n"), ChildrenRead(h.root)])
        removed = session.delete(f"{h.root}/n")
        node, names = (await read).value
        assert (node.data, names) == (b"1", ("n",))
        assert written.done
        await removed

    conform(story)


def test_a_broken_connection_fails_it_as_a_whole(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        await session.exists(h.root)
        pending = session.multi_read([GetRead(h.root), ChildrenRead(h.root)])
        h.hold(session)
        h.break_now(session)
        await h.expect(session, SessionEventKind.DISCONNECTED)
        with pytest.raises(ConnectionLoss):
            await pending
        queued = session.multi_read([ChildrenRead(h.root)])
        assert not queued.done
        h.release(session)
        assert (await queued).value == ((),)
        await h.expect(session, SessionEventKind.CONNECTED)
        h.expire(session)
        await h.expect(session, SessionEventKind.DISCONNECTED)
        await h.expect(session, SessionEventKind.EXPIRED)
        with pytest.raises(SessionExpired):
            await session.multi_read([GetRead(h.root)])

    conform(story)
