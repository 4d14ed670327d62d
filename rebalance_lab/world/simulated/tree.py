"""The znodes, as ZooKeeper 3.9's DataTree keeps them.

A znode keeps its Stat and its sorted tuple of children until the next change, and all readers get the same objects.
Without this, 10,000 members that each sort 10,000 ids would cost seconds in each round.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Callable

from rebalance_lab.world import errors
from rebalance_lab.world.ports import Children, Node, Stat

#: The znodes that every server has. They cannot be deleted.
SPECIAL_PATHS = ("/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota")

#: PathUtils.validatePath, and the root: no empty, `.` or `..` segment, no control characters, and no characters above
#: 16 bits, which Java sees as surrogates.
_VALID_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[^/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\U0010ffff]+)+|/")


class Refused(Exception):
    """The server refuses a write; `code` is ZooKeeper's."""

    def __init__(self, error: type[errors.ZooKeeperError]) -> None:
        super().__init__(error.__name__)
        self.code = error.code


class Znode:
    """One znode. `owner`: session id of an ephemeral one, else 0. `creations`: how many children were created in it,
    which is the number of the next sequential one. (The Stat's cversion also counts deletions.)"""

    __slots__ = (
        "_children",
        "_node",
        "_stat",
        "creations",
        "ctime_ms",
        "czxid",
        "data",
        "mtime_ms",
        "mzxid",
        "names",
        "owner",
        "pzxid",
        "version",
    )

    def __init__(self, data: bytes, owner: int, zxid: int, wall_ms: int) -> None:
        self.data = data
        self.owner = owner
        self.czxid = self.mzxid = self.pzxid = zxid
        self.ctime_ms = self.mtime_ms = wall_ms
        self.version = 0
        self.creations = 0
        self.names: list[str] = []
        self._stat: Stat | None = None
        self._node: Node | None = None
        self._children: Children | None = None

    def changed(self) -> None:
        """Forget the objects that readers share."""
        self._stat = self._node = self._children = None

    def stat(self) -> Stat:
        if self._stat is None:
            self._stat = Stat(
                czxid=self.czxid,
                mzxid=self.mzxid,
                ctime_ms=self.ctime_ms,
                mtime_ms=self.mtime_ms,
                version=self.version,
                # DataNode.copyStat: creations and deletions, which makes it -1 for a fresh root.
                cversion=2 * self.creations - len(self.names),
                aversion=0,
                ephemeral_owner=self.owner,
                data_length=len(self.data),
                num_children=len(self.names),
                pzxid=self.pzxid,
            )
        return self._stat

    def node(self) -> Node:
        if self._node is None:
            self._node = Node(self.data, self.stat())
        return self._node

    def children(self) -> Children:
        if self._children is None:
            self._children = Children(tuple(self.names), self.stat())
        return self._children

    def saved(self) -> tuple[bytes, int, int, int, int, int]:
        """The fields that a write may change, for `restore`."""
        return self.data, self.version, self.mzxid, self.mtime_ms, self.pzxid, self.creations

    def restore(self, saved: tuple[bytes, int, int, int, int, int]) -> None:
        self.data, self.version, self.mzxid, self.mtime_ms, self.pzxid, self.creations = saved
        self.changed()

    def holds(self, name: str) -> bool:
        index = bisect_left(self.names, name)
        return index < len(self.names) and self.names[index] == name


class Tree:
    """All znodes by path. A write that raises Refused has changed nothing.

    `ephemerals`: session id -> the paths of its ephemeral znodes, in the order of their creation. Sessions without
    ephemeral znodes are missing.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, Znode] = {path: Znode(b"", 0, 0, 0) for path in SPECIAL_PATHS}
        self.ephemerals: dict[int, dict[str, None]] = {}
        self.nodes["/"].names = ["zookeeper"]
        self.nodes["/zookeeper"].names = ["config", "quota"]

    def create(self, path: str, data: bytes, owner: int, sequence: bool, zxid: int, wall_ms: int) -> str:
        """The path created. Checks come in the order of PrepRequestProcessor.

        A sequential path ends in ten digits: how many children its parent had before.
        """
        parent = self.nodes.get(parent_of(path))
        if parent is None:
            raise Refused(errors.NoNode)
        if sequence:
            path = self.sequential(path)
        if _VALID_PATH.fullmatch(path) is None:
            raise Refused(errors.BadArguments)
        if path in self.nodes:
            raise Refused(errors.NodeExists)
        if parent.owner:
            raise Refused(errors.NoChildrenForEphemerals)
        self._put(path, Znode(data, owner, zxid, wall_ms), parent)
        parent.creations += 1
        parent.pzxid = zxid
        parent.changed()
        return path

    def set(self, path: str, data: bytes, version: int, zxid: int, wall_ms: int) -> Znode:
        if _VALID_PATH.fullmatch(path) is None:
            raise Refused(errors.BadArguments)
        node = self._expect(path, version)
        node.data = data
        node.version += 1
        node.mzxid = zxid
        node.mtime_ms = wall_ms
        node.changed()
        return node

    def delete(self, path: str, version: int, zxid: int) -> Znode:
        """The znode that was deleted."""
        if path in SPECIAL_PATHS:
            raise Refused(errors.BadArguments)
        parent_of(path)  # raises BadArguments for an invalid path, before NoNode is found
        node = self._expect(path, version)
        if node.names:
            raise Refused(errors.NotEmpty)
        self.remove(path, zxid)
        return node

    def remove(self, path: str, zxid: int) -> None:
        """Take out a znode that has no children."""
        parent = self.nodes[parent_of(path)]
        self._take(path, parent)
        parent.pzxid = zxid
        parent.changed()

    def close(self, session_id: int, zxid: int) -> list[str]:
        """Take out a session's ephemeral znodes. Returns the paths that were taken out, in order."""
        removed = []
        for path in sorted(self.ephemerals.get(session_id, ())):
            self.remove(path, zxid)
            removed.append(path)
        return removed

    def check(self, path: str, version: int) -> Znode:
        """The znode, if it has this version (-1: any)."""
        return self._expect(path, version)

    def sequential(self, path: str) -> str:
        """The path a sequential create of `path` would make now; itself where it would fail."""
        parent = self.nodes.get(parent_of(path))
        return path if parent is None else f"{path}{parent.creations:010d}"

    def undo(self, path: str) -> Callable[[], None]:
        """A function that undoes the next write to `path`."""
        node, parent = self.nodes.get(path), self.nodes.get(parent_of(path))
        before = None if node is None else node.saved()
        parent_before = None if parent is None else parent.saved()

        def restore() -> None:
            if parent is None or parent_before is None:
                return  # without a parent nothing can have been done
            there = path in self.nodes
            if node is None:
                if there:
                    self._take(path, parent)
            elif before is not None:
                if not there:
                    self._put(path, node, parent)
                node.restore(before)
            parent.restore(parent_before)

        return restore

    def _put(self, path: str, node: Znode, parent: Znode) -> None:
        self.nodes[path] = node
        insort(parent.names, name_of(path))
        if node.owner:
            self.ephemerals.setdefault(node.owner, {})[path] = None

    def _take(self, path: str, parent: Znode) -> None:
        node = self.nodes.pop(path)
        name = name_of(path)
        index = bisect_left(parent.names, name)
        assert parent.names[index] == name, f"{path} is not among its parent's children"
        del parent.names[index]
        if node.owner:
            owned = self.ephemerals[node.owner]
            del owned[path]
            if not owned:
                del self.ephemerals[node.owner]

    def _expect(self, path: str, version: int) -> Znode:
        node = self.nodes.get(path)
        if node is None:
            raise Refused(errors.NoNode)
        if version not in (-1, node.version):
            raise Refused(errors.BadVersion)
        return node


def parent_of(path: str) -> str:
    """The parent's path. Raises Refused (BadArguments) for what cannot be one."""
    slash = path.rfind("/")
    if slash < 0 or "\0" in path:
        raise Refused(errors.BadArguments)
    return path[:slash] or "/"


def name_of(path: str) -> str:
    return path[path.rfind("/") + 1 :]
