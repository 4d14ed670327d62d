"""The server's watches. A watch belongs to a connection. It ends when it fires and when the connection ends.

The server has two tables: data (which exists() arms too, on znodes that are not there yet)
and child. The client has three, see `world.zk.watches`.
"""

from __future__ import annotations

from rebalance_lab.history.transactions import Transaction, TransactionKind
from rebalance_lab.world.ports import WatchKind
from rebalance_lab.world.simulated.link import Link
from rebalance_lab.world.simulated.tree import Tree, parent_of
from rebalance_lab.world.zk.messages import Fired, Rearm


class WatchTable:
    """Path -> the connections that watch it, in the order they came (a dict: sets have none)."""

    def __init__(self) -> None:
        self._links: dict[str, dict[Link, None]] = {}
        self._paths: dict[Link, dict[str, None]] = {}

    def __len__(self) -> int:
        return sum(len(links) for links in self._links.values())

    def add(self, path: str, link: Link) -> None:
        self._links.setdefault(path, {})[link] = None
        self._paths.setdefault(link, {})[path] = None

    def take(self, path: str) -> dict[Link, None]:
        """Disarm a path, and return the connections that watched it."""
        links = self._links.pop(path, None)
        if links is None:
            return {}
        for link in links:
            paths = self._paths[link]
            del paths[path]
            if not paths:
                del self._paths[link]
        return links

    def drop(self, link: Link) -> None:
        """Forget a connection."""
        for path in self._paths.pop(link, ()):
            links = self._links[path]
            del links[link]
            if not links:
                del self._links[path]


class Watches:
    """Both tables, and which change fires what (DataTree of ZooKeeper 3.9)."""

    def __init__(self) -> None:
        self.data = WatchTable()
        self.child = WatchTable()

    def fire(self, record: Transaction) -> None:
        """What one logged write fires; the end of a session fires by path, see `deleted`."""
        if record.kind is TransactionKind.CREATE:
            self.created(record.path)
        elif record.kind is TransactionKind.SET:
            self.changed(record.path)
        elif record.kind is TransactionKind.DELETE:
            self.deleted(record.path)

    def created(self, path: str) -> None:
        self._fire(self.data, path, WatchKind.CREATED)
        self._fire(self.child, parent_of(path), WatchKind.CHILD)

    def changed(self, path: str) -> None:
        self._fire(self.data, path, WatchKind.CHANGED)

    def deleted(self, path: str) -> None:
        """One event for each connection, even if it watched both data and children."""
        told = self.data.take(path)
        told.update(self.child.take(path))
        if told:
            event = Fired(WatchKind.DELETED, path)
            for link in told:
                link.to_client(event)
        self._fire(self.child, parent_of(path), WatchKind.CHILD)

    def rearm(self, tree: Tree, link: Link, asked: Rearm) -> None:
        """SetWatches: fire at once what changed since the client's last zxid, arm the rest."""

        def restore(path: str, fired: WatchKind | None, table: WatchTable) -> None:
            if fired is None:
                table.add(path, link)
            else:
                link.to_client(Fired(fired, path))

        since, nodes = asked.relative_zxid, tree.nodes
        for path in asked.data:
            node = nodes.get(path)
            changed = WatchKind.DELETED if node is None else WatchKind.CHANGED if node.mzxid > since else None
            restore(path, changed, self.data)
        for path in asked.exist:
            restore(path, WatchKind.CREATED if path in nodes else None, self.data)
        for path in asked.child:
            node = nodes.get(path)
            changed = WatchKind.DELETED if node is None else WatchKind.CHILD if node.pzxid > since else None
            restore(path, changed, self.child)

    def drop(self, link: Link) -> None:
        self.data.drop(link)
        self.child.drop(link)

    @staticmethod
    def _fire(table: WatchTable, path: str, kind: WatchKind) -> None:
        links = table.take(path)
        if links:
            event = Fired(kind, path)
            for link in links:
                link.to_client(event)
