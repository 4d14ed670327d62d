"""Invariants of the simulated server, cheap enough to check after every event: only what the
last transactions touched is looked at."""

from __future__ import annotations

from rebalance_lab.history.transactions import Transaction
from rebalance_lab.world.simulated.sessions import ServerSession
from rebalance_lab.world.simulated.tree import Tree, name_of, parent_of


class ImpossibleWorld(Exception):
    """The simulated server is in a state that no ZooKeeper reaches: a bug of the simulator."""


class Audit:
    """Collects what changed; `check` verifies it once."""

    def __init__(self, tree: Tree, living: dict[int, ServerSession]) -> None:
        self._tree = tree
        self._living = living
        self._zxid = 0
        self._paths: list[str] = []
        self._ended: list[ServerSession] = []
        self.pending = False

    def committed(self, transaction: Transaction) -> None:
        """Raises ImpossibleWorld when zxids do not grow one by one."""
        if transaction.zxid != self._zxid + 1:
            raise ImpossibleWorld(f"{transaction.kind.name} has zxid {transaction.zxid:#x} after {self._zxid:#x}")
        self._zxid = transaction.zxid
        if transaction.path:
            self._paths.append(transaction.path)
            self.pending = True

    def ended(self, session: ServerSession) -> None:
        self._ended.append(session)
        self.pending = True

    def check(self) -> None:
        """Raises ImpossibleWorld."""
        if self.pending:
            for path in self._paths:
                self._check_path(path)
            for session in self._ended:
                self._check_ended(session)
            self._paths.clear()
            self._ended.clear()
            self.pending = False

    def _check_path(self, path: str) -> None:
        node = self._tree.nodes.get(path)
        parent = self._tree.nodes.get(parent_of(path))
        listed = parent is not None and parent.holds(name_of(path))
        if path != "/" and listed != (node is not None):
            raise ImpossibleWorld(
                f"{path} {'is' if listed else 'is not'} listed by its parent, and {node and 'exists'}"
            )
        if node is None:
            return
        if node.owner and node.names:
            raise ImpossibleWorld(f"{path} is ephemeral and has children {node.names}")
        owner = self._living.get(node.owner)
        if node.owner and (owner is None or path not in owner.ephemerals):
            raise ImpossibleWorld(
                f"{path} belongs to session {node.owner:#x}, which {'disowns it' if owner else 'is dead'}"
            )

    def _check_ended(self, session: ServerSession) -> None:
        left = [path for path in session.ephemerals if path in self._tree.nodes]
        left = [path for path in left if self._tree.nodes[path].owner == session.id]
        if left or session.id in self._living:
            raise ImpossibleWorld(f"session {session.id:#x} ended and left {left}")
