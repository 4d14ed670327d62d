"""ZooKeeper in a hundred lines: what a session must be answered and told. No time, no network.

Paths are relative to the story's root, which is "". A `clock` stands for the zxid: it grows with
every write, refused or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field

from rebalance_lab.world.errors import BadVersion, NoChildrenForEphemerals, NodeExists, NoNode, NotEmpty
from rebalance_lab.world.ports import Check, Create, Delete, Set, WatchKind, WriteOperation

#: A client's watch tables (Java's ZKWatchManager) and which of them an event ends.
DATA, EXIST, CHILD = "data", "exist", "child"
ENDS: dict[WatchKind, tuple[str, ...]] = {
    WatchKind.CREATED: (DATA, EXIST),
    WatchKind.CHANGED: (DATA, EXIST),
    WatchKind.DELETED: (DATA, EXIST, CHILD),
    WatchKind.CHILD: (CHILD,),
}

Watch = tuple[str, str]
Refusal = type[Exception]
Done = tuple[str | int | None, ...]


@dataclass
class ModelNode:
    data: bytes
    owner: str | None
    changed_at: int
    children_changed_at: int
    version: int = 0
    creations: int = 0


@dataclass
class ModelSession:
    """`told`: the watches that must have ended since the last look, and how. `seen`: the clock
    at the last reply."""

    connected: bool = True
    armed: set[Watch] = field(default_factory=set)
    told: dict[Watch, WatchKind] = field(default_factory=dict)
    seen: int = 0


def parent_of(path: str) -> str:
    return path.rpartition("/")[0]


class Model:
    def __init__(self) -> None:
        self.clock = 0
        self.nodes = {"": ModelNode(b"", None, 0, 0)}
        self.sessions: dict[str, ModelSession] = {}

    def names(self, path: str) -> tuple[str, ...]:
        inside = (each for each in self.nodes if each and parent_of(each) == path)
        return tuple(sorted(each.rpartition("/")[2] for each in inside))

    # -- writes: the created path or nothing; an error's class where the server refuses ------

    def create(self, session: str, path: str, data: bytes, *, ephemeral: bool, sequence: bool) -> str | Refusal:
        self.clock += 1
        parent = self.nodes.get(parent_of(path))
        if parent is None:
            return NoNode
        if sequence:
            path = f"{path}{parent.creations:010d}"
        if path in self.nodes:
            return NodeExists
        if parent.owner is not None:
            return NoChildrenForEphemerals
        self.nodes[path] = ModelNode(data, session if ephemeral else None, self.clock, self.clock)
        parent.creations += 1
        parent.children_changed_at = self.clock
        self._fire(WatchKind.CREATED, path)
        self._fire(WatchKind.CHILD, parent_of(path))
        return path

    def set(self, path: str, data: bytes, version: int) -> int | Refusal:
        self.clock += 1
        node = self.nodes.get(path)
        if node is None:
            return NoNode
        if version not in (-1, node.version):
            return BadVersion
        node.data, node.changed_at = data, self.clock
        node.version += 1
        self._fire(WatchKind.CHANGED, path)
        return node.version

    def delete(self, path: str, version: int) -> Refusal | None:
        self.clock += 1
        node = self.nodes.get(path)
        if node is None:
            return NoNode
        if version not in (-1, node.version):
            return BadVersion
        if self.names(path):
            return NotEmpty
        self._remove(path)
        return None

    def check(self, path: str, version: int) -> Refusal | None:
        node = self.nodes.get(path)
        if node is None:
            return NoNode
        return BadVersion if version not in (-1, node.version) else None

    def multi(self, session: str, operations: Sequence[WriteOperation]) -> Done | tuple[int, Refusal]:
        """All in turn; or, as if nothing had been asked, which was the first refused, and why."""
        nodes, sessions = deepcopy(self.nodes), deepcopy(self.sessions)
        done: list[str | int | None] = []
        for index, operation in enumerate(operations):
            result = self._one(session, operation)
            if isinstance(result, type):
                self.nodes, self.sessions = nodes, sessions
                return index, result
            done.append(result)
        self.clock += 1
        return tuple(done)

    def _one(self, session: str, operation: WriteOperation) -> str | int | Refusal | None:
        match operation:
            case Create(path, data, ephemeral, sequence):
                return self.create(session, path, data, ephemeral=ephemeral, sequence=sequence)
            case Set(path, data, version):
                return self.set(path, data, version)
            case Delete(path, version):
                return self.delete(path, version)
            case Check(path, version):
                return self.check(path, version)

    def _remove(self, path: str) -> None:
        del self.nodes[path]
        self.nodes[parent_of(path)].children_changed_at = self.clock
        self._fire(WatchKind.DELETED, path)
        self._fire(WatchKind.CHILD, parent_of(path))

    # -- sessions ---------------------------------------------------------------------------

    def opened(self, session: str) -> None:
        self.clock += 1
        self.sessions[session] = ModelSession()

    def ended(self, session: str) -> None:
        """Closed or expired: its ephemeral znodes go."""
        self.clock += 1
        del self.sessions[session]
        for path in sorted(path for path, node in self.nodes.items() if node.owner == session):
            self._remove(path)

    def reconnected(self, session: str) -> None:
        """SetWatches: what changed since the last reply is told now."""
        client = self.sessions[session]
        client.connected = True
        for table, path in sorted(client.armed):
            node = self.nodes.get(path)
            if table == EXIST:
                kind = None if node is None else WatchKind.CREATED
            elif node is None:
                kind = WatchKind.DELETED
            elif table == DATA:
                kind = WatchKind.CHANGED if node.changed_at > client.seen else None
            else:
                kind = WatchKind.CHILD if node.children_changed_at > client.seen else None
            if kind is not None:
                self._tell(client, kind, path)

    # -- watches ----------------------------------------------------------------------------

    def arm(self, session: str, table: str, path: str) -> None:
        self.sessions[session].armed.add((table, path))

    def _fire(self, kind: WatchKind, path: str) -> None:
        for client in self.sessions.values():
            if client.connected:
                self._tell(client, kind, path)

    @staticmethod
    def _tell(client: ModelSession, kind: WatchKind, path: str) -> None:
        for table in ENDS[kind]:
            if (table, path) in client.armed:
                client.armed.discard((table, path))
                client.told[(table, path)] = kind
