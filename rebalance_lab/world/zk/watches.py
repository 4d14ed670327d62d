"""A session's watches, as Java's client keeps them (ClientCnxn's ZKWatchManager): three tables, each path once."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_lab.kernel import Future
from rebalance_lab.world.errors import ZooKeeperError
from rebalance_lab.world.ports import WatchEvent, WatchKind

#: SetWatches is split so that no request comes near the server's limit (SET_WATCHES_MAX_LENGTH of 3.9.3; 3.4.6 sends
#: one request).
SET_WATCHES_LIMIT_BYTES = 128 * 1024


class ClientWatches:
    """Watch futures by path. `data` and `child` were set by reads of a znode's data and children, `exist` by an
    exists() that found no znode. All reads that watch the same thing share one future. Paths are without the chroot.
    `owner`: the process, for reports."""

    __slots__ = ("_owner", "child", "data", "exist")

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self.data: dict[str, Future[WatchEvent]] = {}
        self.exist: dict[str, Future[WatchEvent]] = {}
        self.child: dict[str, Future[WatchEvent]] = {}

    def __len__(self) -> int:
        return len(self.data) + len(self.exist) + len(self.child)

    def add(self, path: str, *, children: bool = False, missing: bool = False) -> Future[WatchEvent]:
        """The watch of a read. `children`: it read the names of children; `missing`: exists() found no znode."""
        table = self.exist if missing else self.child if children else self.data
        watch = table.get(path)
        if watch is None:
            watch = table[path] = Future(("watch on", path, "of", self._owner))
        return watch

    def fire(self, event: WatchEvent) -> None:
        """Complete what the event ends (ZKWatchManager.materialize). An event that no watch waits for is ignored:
        the same change may fire a watch twice, as data and as child watch."""
        kind = event.kind
        tables = () if kind is WatchKind.CHILD else (self.data, self.exist)
        if kind is WatchKind.CHILD or kind is WatchKind.DELETED:
            tables = (*tables, self.child)
        for table in tables:
            watch = table.pop(event.path, None)
            if watch is not None:
                watch.set(event)

    def fail(self, error: type[ZooKeeperError], session_id: int) -> None:
        """The session has ended: no watch will fire any more."""
        for table in (self.data, self.exist, self.child):
            watches = list(table.items())
            table.clear()
            for path, watch in watches:
                watch.fail(error("watch", path, session_id=session_id))

    def batches(self) -> Iterator[tuple[list[str], list[str], list[str]]]:
        """(data, exist, child) paths for SetWatches, as few batches below the limit as their order allows."""
        batch: tuple[list[str], list[str], list[str]] = ([], [], [])
        size = 0
        for which, table in enumerate((self.data, self.exist, self.child)):
            for path in table:
                length = len(path.encode()) + 4
                if size and size + length > SET_WATCHES_LIMIT_BYTES:
                    yield batch
                    batch, size = ([], [], []), 0
                batch[which].append(path)
                size += length
        if size:
            yield batch
