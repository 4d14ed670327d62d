"""Invariants of the simulated server. They are cheap enough to check after every event, because only what the last
transactions changed is checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rebalance_lab.history.transactions import Transaction
from rebalance_lab.world.simulated.sessions import ServerSession
from rebalance_lab.world.simulated.tree import name_of, parent_of

if TYPE_CHECKING:
    from rebalance_lab.world.simulated.authority import Authority

#: Where the counter in a zxid ends and the epoch begins.
EPOCH_SHIFT = 32


class ImpossibleWorld(Exception):
    """The simulated server is in a state that no ZooKeeper reaches: a bug of the simulator."""


class Audit:
    """Collects what changed; `check` verifies it once."""

    def __init__(self, authority: Authority) -> None:
        self._authority = authority
        self._zxid = 0
        self._paths: list[str] = []
        self._ended: list[ServerSession] = []
        self.pending = False

    def committed(self, zxid: int, records: tuple[Transaction, ...]) -> None:
        """Raises ImpossibleWorld when zxids do not grow one by one within an epoch, or a record
        has another."""
        first_of_epoch = zxid >> EPOCH_SHIFT > self._zxid >> EPOCH_SHIFT and zxid & ((1 << EPOCH_SHIFT) - 1) == 1
        if zxid != self._zxid + 1 and not first_of_epoch:
            raise ImpossibleWorld(f"zxid {zxid:#x} is taken after {self._zxid:#x}")
        self._zxid = zxid
        for record in records:
            if record.zxid != zxid:
                raise ImpossibleWorld(f"{record.kind.name} has zxid {record.zxid:#x} in the transaction {zxid:#x}")
            touched = (record.path,) if record.path else record.removed or ()
            if touched:
                self._paths.extend(touched)
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
        tree = self._authority.tree
        node = tree.nodes.get(path)
        parent = tree.nodes.get(parent_of(path))
        listed = parent is not None and parent.holds(name_of(path))
        if path != "/" and listed != (node is not None):
            raise ImpossibleWorld(
                f"{path} {'is' if listed else 'is not'} listed by its parent, and {node and 'exists'}"
            )
        if node is None:
            return
        if node.owner and node.names:
            raise ImpossibleWorld(f"{path} is ephemeral and has children {node.names}")
        dead = node.owner not in self._authority.sessions.living
        if node.owner and (dead or path not in tree.ephemerals.get(node.owner, ())):
            raise ImpossibleWorld(
                f"{path} belongs to session {node.owner:#x}, which {'is dead' if dead else 'disowns it'}"
            )

    def _check_ended(self, session: ServerSession) -> None:
        left = list(self._authority.tree.ephemerals.get(session.id, ()))
        if left or session.id in self._authority.sessions.living:
            raise ImpossibleWorld(f"session {session.id:#x} ended and left {left}")
