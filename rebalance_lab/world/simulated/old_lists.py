"""The planted bug `old-lists`: a server answers with an old list of a group's members, as a lagging follower does."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import msgspec

from rebalance_lab.kernel import Future
from rebalance_lab.world.ports import Children, Reply, ZooKeeper, ZooKeeperFactory

#: So many requests after a change get the old list: that of the member's event thread, whose watch fired, and that of
#: the attempt which decides.
_REQUESTS = 2


class OldLists:
    """The port `ZooKeeperFactory` around another. When the ids of a group's members have changed each of its sessions
    gets the list that it was given before, with the zxid of that answer, for a few requests more. A watch is set on the
    list of now."""

    def __init__(self, inner: ZooKeeperFactory) -> None:
        self._inner = inner

    def open(self, connect: str, session_timeout_ms: int) -> ZooKeeper:
        return cast(ZooKeeper, _Session(self._inner.open(connect, session_timeout_ms)))


class _Session:
    """All but `children` is the inner session's."""

    def __init__(self, inner: ZooKeeper) -> None:
        self._inner = inner
        #: By path: the latest true answer, the one before the list changed, and how often that is to be given.
        self._lists: dict[str, tuple[Reply[Children], Reply[Children], int]] = {}

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            return getattr(self._inner, name)

    def children(self, path: str, *, watch: bool = False) -> Future[Reply[Children]]:
        inner = self._inner.children(path, watch=watch)
        if not (path.startswith("/consumers/") and path.endswith("/ids")):
            return inner
        outer: Future[Reply[Children]] = Future(inner.label)
        outer.cause = inner.cause

        def done(answer: Future[Reply[Children]]) -> None:
            if answer.error is not None:
                outer.fail(answer.error)
                return
            reply = answer.result()
            latest, former, left = self._lists.get(path, (reply, reply, 0))
            if reply.value.stat.pzxid != latest.value.stat.pzxid:
                former, left = latest, _REQUESTS
            self._lists[path] = (reply, former, max(0, left - 1))
            outer.set(msgspec.structs.replace(former, watch=reply.watch) if left else reply)

        inner.on(done)
        return outer
