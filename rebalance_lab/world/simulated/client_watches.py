"""A simulated session's watches, as Java's client keeps them: three tables, each path once."""

from __future__ import annotations

from rebalance_lab.kernel import Future
from rebalance_lab.world.errors import ZooKeeperError
from rebalance_lab.world.ports import WatchEvent, WatchKind
from rebalance_lab.world.simulated.messages import Operation


class ClientWatches:
    """Watch futures by what they wait for. One serves all who watch the same thing. Paths are
    the client's own: a chroot is not in them. `name`: the client's host, for reports."""

    __slots__ = ("_name", "child", "data", "exist")

    def __init__(self, name: str) -> None:
        self._name = name
        self.data: dict[str, Future[WatchEvent]] = {}
        self.exist: dict[str, Future[WatchEvent]] = {}
        self.child: dict[str, Future[WatchEvent]] = {}

    def __bool__(self) -> bool:
        return bool(self.data or self.exist or self.child)

    def add(self, operation: Operation, path: str, *, missing: bool) -> Future[WatchEvent]:
        """The watch of a read; `missing`: exists() found no znode."""
        table = self.exist if missing else self.child if operation is Operation.CHILDREN else self.data
        watch = table.get(path)
        if watch is None:
            watch = table[path] = Future(("watch on", path, "of", self._name))
        return watch

    def fire(self, event: WatchEvent) -> None:
        """Complete what the event ends (ZKWatchManager.materialize)."""
        kind = event.kind
        tables = () if kind is WatchKind.CHILD else (self.data, self.exist)
        if kind is WatchKind.CHILD or kind is WatchKind.DELETED:
            tables = (*tables, self.child)
        for table in tables:
            watch = table.pop(event.path, None)
            if watch is not None:
                watch.set(event)

    def fail(self, error: type[ZooKeeperError], session_id: int) -> None:
        """The session is over: none of them will fire."""
        for table in (self.data, self.exist, self.child):
            watches = list(table.items())
            table.clear()
            for path, watch in watches:
                watch.fail(error("watch", path, session_id=session_id))
