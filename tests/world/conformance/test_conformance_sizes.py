"""Requests longer than a server takes (jute.maxbuffer) are not sent: the session goes on."""

from __future__ import annotations

from typing import Any

import pytest
from conformance_harness import Harness

from rebalance_lab.kernel import Future
from rebalance_lab.world.errors import RequestTooLarge
from rebalance_lab.world.ports import Create, SessionState, Set

#: The longest request: ZooKeeper's default, the frame's own length not counted.
LIMIT_BYTES = 0xFFFFF

#: A set beside its path and data: xid, opcode, two lengths, version.
SET_BYTES = 5 * 4


def test_the_longest_request_is_taken_and_one_byte_more_is_not(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        path = f"{h.root}/n"
        await session.create(path, b"")
        longest = LIMIT_BYTES - SET_BYTES - len(path)
        stat = (await session.set(path, b"k" * longest)).value
        assert stat.data_length == longest
        with pytest.raises(RequestTooLarge) as caught:
            await session.set(path, b"k" * (longest + 1))
        assert (caught.value.path, caught.value.zxid, caught.value.session_id) == (path, -1, session.session_id)
        node = (await session.get(path)).value
        assert (node.stat, len(node.data)) == (stat, longest)

    conform(story)


def test_the_session_goes_on_without_noticing(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        before = session.create(f"{h.root}/before", b"")
        large: list[Future[Any]] = [
            session.create(f"{h.root}/large", b"k" * LIMIT_BYTES),
            session.multi([Create(f"{h.root}/{n}", b"k" * 300_000) for n in range(4)]),
            session.multi([Set(h.root, b""), Set(h.root, b"k" * LIMIT_BYTES)]),
            session.get("/" + "p" * LIMIT_BYTES),
        ]
        after = session.create(f"{h.root}/later", b"")
        for future in large:
            with pytest.raises(RequestTooLarge):
                await future
        await before
        await after
        assert session.state is SessionState.CONNECTED
        assert len(session.events) == 0
        assert (await session.children(h.root)).value.names == ("before", "later")
        mine = [txn for txn in h.transactions() if txn.session_id == session.session_id and txn.path]
        assert [txn.path for txn in mine] == [f"{h.root}/before", f"{h.root}/later"]

    conform(story)


def test_too_large_is_said_also_while_disconnected(conform):
    async def story(h: Harness) -> None:
        session = await h.connected()
        await h.away(session)
        large = session.create(f"{h.root}/large", b"k" * LIMIT_BYTES)
        with pytest.raises(RequestTooLarge):
            await large
        small = session.create(f"{h.root}/small", b"")
        await h.back(session)
        await small

    conform(story)
