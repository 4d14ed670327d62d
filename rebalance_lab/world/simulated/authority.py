"""The state that decides writes: the committed znodes, the sessions, the log.

It belongs to the standalone server, or to the current leader of an ensemble. A write is decided at one instant. It
takes a zxid and is logged even when it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import msgspec

from rebalance_lab.history.transactions import Transaction, TransactionKind
from rebalance_lab.kernel import Kernel, RandomStream
from rebalance_lab.world.ports import Check, Create, Delete, Set, Stat
from rebalance_lab.world.simulated.audit import Audit
from rebalance_lab.world.simulated.sessions import ServerSession, SessionTable
from rebalance_lab.world.simulated.settings import ServerBug, ServerSettings, wall_ms
from rebalance_lab.world.simulated.tree import Refused, Tree
from rebalance_lab.world.zk.messages import Done, Operation, Refusal, Request, Value

#: The code of a multi's operations behind the one that was refused.
RUNTIME_INCONSISTENCY = -2


class Outcome(msgspec.Struct, frozen=True):
    """A decision: what was logged, and what the client is answered."""

    records: tuple[Transaction, ...]
    value: Value
    code: int = 0


class Authority:
    """All writes pass here, one after another.

    `tree` is the committed state; `zxid` the last one taken. `expired` is called with each session that has timed
    out.
    """

    def __init__(
        self,
        kernel: Kernel,
        settings: ServerSettings,
        random: RandomStream,
        plant: str | None,
        expired: Callable[[ServerSession], None],
    ) -> None:
        if plant is not None and plant not in tuple(ServerBug):
            raise ValueError(f"the simulated server knows no planted bug {plant!r}; it knows {', '.join(ServerBug)}")
        self.zxid = 0
        self.tree = Tree()
        self.sessions = SessionTable(kernel, settings, random, expired)
        self.transactions: list[Transaction] = []
        self.listeners: list[Callable[[Transaction], None]] = []
        self.audit = Audit(self)
        self._now_us = kernel.now_us
        self._plant = plant

    def lead(self, tree: Tree, zxid: int) -> None:
        """Another server leads: its znodes are the committed ones, and its epoch begins at `zxid`."""
        self.tree, self.zxid = tree, zxid

    # -- sessions ---------------------------------------------------------------------------

    def open(self, asked_timeout_ms: int, server: int) -> ServerSession:
        """A new session, opened at the server of this number."""
        session = self.sessions.open(asked_timeout_ms, server)
        self._log((self._record(session.id, 0, TransactionKind.SESSION_OPENED, timeout_ms=session.timeout_ms),))
        return session

    def end(self, session: ServerSession, cxid: int) -> list[str]:
        """The session's last transaction: its ephemeral znodes go with it. Returns their paths, in
        the order in which the tree removed them; the log lists these."""
        self.sessions.drop(session)
        paths = self.tree.close(session.id, self.zxid + 1)
        self._log((self._record(session.id, cxid, TransactionKind.SESSION_CLOSED, removed=tuple(paths)),))
        self.audit.ended(session)
        return paths

    # -- writes -----------------------------------------------------------------------------

    def write(self, session: ServerSession, request: Request) -> Outcome:
        """Decide a create, set, delete or multi."""
        if request.operation is Operation.MULTI:
            return self._multi(session, request)
        try:
            record, value = self._WRITES[request.operation](self, session, request.xid, request)
        except Refused as refused:
            return self._refuse(session, request, None, refused.code)
        self._log((record,))
        return Outcome((record,), value)

    def _multi(self, session: ServerSession, request: Request) -> Outcome:
        """All operations or none; each sees what those before it did (PrepRequestProcessor). The
        log of a refused one has an error for each: undone (0), refused, or not looked at."""
        undo: list[Callable[[], None]] = []
        records: list[Transaction] = []
        values: list[Done] = []
        for index, operation in enumerate(request.writes):
            try:
                path = operation.path
                if isinstance(operation, Create) and operation.sequence:
                    path = self.tree.sequential(path)
                undo.append(self.tree.undo(path))
                record, value = self._WRITES[type(operation)](self, session, request.xid, operation)
            except Refused as refused:
                for restore in reversed(undo):
                    restore()
                unseen = len(request.writes) - index - 1
                codes = [*([0] * index), refused.code, *([RUNTIME_INCONSISTENCY] * unseen)]
                return self._refuse(session, request, Refusal(index, refused.code), refused.code, codes)
            records.append(record)
            values.append(value)
        self._log(tuple(records))
        return Outcome(tuple(records), tuple(values))

    def _refuse(
        self, session: ServerSession, request: Request, value: Value, code: int, codes: Sequence[int] = ()
    ) -> Outcome:
        """`codes`: those of the records, where there is not just the one."""
        records = tuple(
            [self._record(session.id, request.xid, TransactionKind.ERROR, code=each) for each in codes or (code,)]
        )
        self._log(records)
        return Outcome(records, value, code)

    def _create(self, session: ServerSession, cxid: int, asked: Create | Request) -> tuple[Transaction, str]:
        if self._plant == ServerBug.TWO_OWNERS:
            self._oust_owner(asked.path)
        owner = session.id if asked.ephemeral else 0
        at_ms = wall_ms(self._now_us())
        path = self.tree.create(asked.path, asked.data, owner, asked.sequence, self.zxid + 1, at_ms)
        fields = {"path": path, "data": asked.data, "ephemeral": asked.ephemeral}
        return self._record(session.id, cxid, TransactionKind.CREATE, **fields), path

    def _oust_owner(self, path: str) -> None:
        node = self.tree.nodes.get(path)
        if node is not None and node.owner and "/owners/" in path:
            self.tree.remove(path, self.zxid)

    def _set(self, session: ServerSession, cxid: int, asked: Set | Request) -> tuple[Transaction, Stat]:
        at_ms = wall_ms(self._now_us())
        node = self.tree.set(asked.path, asked.data, asked.version, self.zxid + 1, at_ms)
        fields = {"path": asked.path, "data": asked.data, "version": node.version}
        return self._record(session.id, cxid, TransactionKind.SET, **fields), node.stat()

    def _delete(self, session: ServerSession, cxid: int, asked: Delete | Request) -> tuple[Transaction, None]:
        self.tree.delete(asked.path, asked.version, self.zxid + 1)
        return self._record(session.id, cxid, TransactionKind.DELETE, path=asked.path), None

    def _check(self, session: ServerSession, cxid: int, asked: Check) -> tuple[Transaction, None]:
        version = self.tree.check(asked.path, asked.version).version
        return self._record(session.id, cxid, TransactionKind.CHECK, path=asked.path, version=version), None

    # -- the log ----------------------------------------------------------------------------

    def _record(self, session_id: int, cxid: int, kind: TransactionKind, **fields: Any) -> Transaction:
        """What will be logged under the next zxid. `fields`: those of a Transaction that belong to the kind."""
        return Transaction(self.zxid + 1, session_id, cxid, wall_ms(self._now_us()), kind, **fields)

    def _log(self, records: tuple[Transaction, ...]) -> None:
        """Take the next zxid, and log what happens under it: nothing, for a multi of nothing."""
        self.zxid += 1
        self.audit.committed(self.zxid, records)
        self.transactions.extend(records)
        for record in records:
            for listener in self.listeners:
                listener(record)

    #: By what was asked for: a request of its own, or an operation of a multi.
    _WRITES: ClassVar[dict[object, Callable[..., Any]]] = {
        Operation.CREATE: _create,
        Operation.SET: _set,
        Operation.DELETE: _delete,
        Create: _create,
        Set: _set,
        Delete: _delete,
        Check: _check,
    }
