"""A session's watches, as Java's client keeps them: three tables, each path once."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from rebalance_lab.kernel import Future
from rebalance_lab.world.errors import ZooKeeperError
from rebalance_lab.world.ports import WatchEvent, WatchKind

#: SetWatches is split so that no request comes near the server's limit (Java's number).
SET_WATCHES_LIMIT_BYTES = 128 * 1024


class WatchClass(Enum):
    """What a watch waits for. EXISTS: the creation of a znode that was not there."""

    DATA = "data"
    EXISTS = "exists"
    CHILDREN = "children"


#: Which watches an event fires, and so uses up.
FIRES: dict[WatchKind, tuple[WatchClass, ...]] = {
    WatchKind.CREATED: (WatchClass.DATA, WatchClass.EXISTS),
    WatchKind.CHANGED: (WatchClass.DATA, WatchClass.EXISTS),
    WatchKind.DELETED: (WatchClass.DATA, WatchClass.EXISTS, WatchClass.CHILDREN),
    WatchKind.CHILD: (WatchClass.CHILDREN,),
}


class WatchTable:
    """Watch futures by class and path. One future serves all who watch the same thing."""

    def __init__(self) -> None:
        self._tables: dict[WatchClass, dict[str, Future[WatchEvent]]] = {each: {} for each in WatchClass}

    def __len__(self) -> int:
        return sum(len(table) for table in self._tables.values())

    def add(self, which: WatchClass, path: str) -> Future[WatchEvent]:
        table = self._tables[which]
        future = table.get(path)
        if future is None:
            future = table[path] = Future(("watch", which.value, path))
        return future

    def fire(self, event: WatchEvent) -> None:
        """Complete what the event fires. One that nobody waits for is ignored: the same change
        may fire a watch twice, as data and as child watch."""
        for which in FIRES[event.kind]:
            future = self._tables[which].pop(event.path, None)
            if future is not None:
                future.set(event)

    def fail(self, error: type[ZooKeeperError], session_id: int) -> None:
        """The session has ended: no watch will fire any more."""
        for table in self._tables.values():
            waiting = list(table.items())
            table.clear()
            for path, future in waiting:
                future.fail(error("watch", path, session_id=session_id))

    def batches(self) -> Iterator[tuple[list[str], list[str], list[str]]]:
        """(data, exists, children) paths for SetWatches, as few batches below the limit as
        their order allows."""
        batch: dict[WatchClass, list[str]] = {each: [] for each in WatchClass}
        size = 0
        for which, table in self._tables.items():
            for path in table:
                length = len(path.encode()) + 4
                if size and size + length > SET_WATCHES_LIMIT_BYTES:
                    yield batch[WatchClass.DATA], batch[WatchClass.EXISTS], batch[WatchClass.CHILDREN]
                    batch, size = {each: [] for each in WatchClass}, 0
                batch[which].append(path)
                size += length
        if size:
            yield batch[WatchClass.DATA], batch[WatchClass.EXISTS], batch[WatchClass.CHILDREN]
