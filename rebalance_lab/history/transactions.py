"""The registry's history: ZooKeeper's transactions, and the events they become.

The source is the server's own transaction log, or the records of the simulated server; both give the same
`Transaction`s. Reading the log puts no load on the server and shows every change, whereas an observer with watches sees
two quick changes as one. One thing is not in every log: which ephemeral znodes went with a session. ZooKeeper lists
them since 3.6 (CloseSessionTxn). If the list is missing, the tracker names the znodes that the session had created and
that were not deleted, and marks these events `sampled`: they are inferred, and no check may use them as evidence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, NamedTuple, Protocol

from rebalance_lab.history.events import Event, Kind, Layer, session_text
from rebalance_lab.history.planted import PlantedBug

REGISTRY_ACTOR = "zookeeper"


class RecorderBug(PlantedBug):
    """The planted bug of the recorder of the registry."""

    LOSES_RELEASES = "recorder-loses-releases", "recorder: forgets that owner znodes were deleted"


class TransactionKind(Enum):
    """ZooKeeper's transaction types; the values are its opcodes. A refused write is logged too, because it takes a
    zxid. OTHER: a transaction that changes no znode of the history (setACL, reconfig, or a write outside the recorded
    subtree); it has only a zxid."""

    SESSION_OPENED = -10
    SESSION_CLOSED = -11
    ERROR = -1
    CREATE = 1
    DELETE = 2
    SET = 5
    CHECK = 13
    OTHER = 0


_WITHOUT_EVENTS = frozenset({TransactionKind.CHECK, TransactionKind.OTHER})


@dataclass(frozen=True, slots=True)
class Transaction:
    """One record. A multi gives one for each of its operations, all with the same zxid.

    `wall_ms` is the server's clock; `session_id` and `cxid` are those of the request.
    `timeout_ms` belongs to SESSION_OPENED, `code` to ERROR; `data` to CREATE and SET; `removed` to
    SESSION_CLOSED: the paths that went with the session, in the log's order, or None where the log
    does not list them (ZooKeeper before 3.6, or `zookeeper.closeSessionTxn.enabled=false`).
    """

    zxid: int
    session_id: int
    cxid: int
    wall_ms: int
    kind: TransactionKind
    path: str = ""
    data: bytes = b""
    ephemeral: bool = False
    version: int = -1
    timeout_ms: int = 0
    code: int = 0
    removed: tuple[str, ...] | None = None


class PathFacts(NamedTuple):
    """What a path and its payload mean, in the fields of events."""

    group: str | None = None
    topic: str | None = None
    partition: int | None = None
    member: str | None = None


class Facts(Protocol):
    """The fields of PathFacts, for codecs that do not know `history` (`wire.describe`)."""

    @property
    def group(self) -> str | None: ...
    @property
    def topic(self) -> str | None: ...
    @property
    def partition(self) -> int | None: ...
    @property
    def member(self) -> str | None: ...


Describe = Callable[[str, bytes], Facts]


class ImpossibleTransaction(Exception):
    """Transactions that no ZooKeeper could have logged: the log has a gap, or the recording is broken."""


class RegistryTracker:
    """Turns transactions into registry events, one by one, in zxid order.

    A closed session yields SESSION_CLOSED, and then a DELETED with the same zxid for each path that
    the log lists: no more and no fewer, in the log's order. SESSION_CLOSED then has `sampled: false`. Without a list it
    has `sampled: true`, and so does each DELETED that follows; these come from the tracker's own record of which
    session created what, by path. `describe` comes from `wire`, because `history` does not know payloads.

    A transaction with nothing to record takes a zxid but yields no event. So that it does not look like a lost record,
    the next event counts such transactions in its detail `passed`.
    """

    def __init__(self, *, wall_offset_us: int, describe: Describe, plant: str | None = None) -> None:
        self._offset_us = wall_offset_us
        self._describe = describe
        self._plant = plant
        self._n = 0
        self._zxid = -1
        self._passed: set[int] = set()
        self._nodes: dict[str, tuple[int, Facts]] = {}

    def feed(self, transaction: Transaction) -> list[Event]:
        """The events of one transaction. Raises ImpossibleTransaction."""
        if transaction.zxid < self._zxid:
            raise ImpossibleTransaction(f"zxid {transaction.zxid:#x} after {self._zxid:#x}")
        self._zxid = transaction.zxid
        if transaction.kind in _WITHOUT_EVENTS:
            self._passed.add(transaction.zxid)
            return []
        handler = self._HANDLERS[transaction.kind]
        return handler(self, transaction)

    def _opened(self, txn: Transaction) -> list[Event]:
        return [self._event(txn, Kind.SESSION_OPENED, PathFacts(), {"timeout_ms": txn.timeout_ms})]

    def _closed(self, txn: Transaction) -> list[Event]:
        sampled = txn.removed is None
        gone = self._held_by(txn.session_id) if txn.removed is None else txn.removed
        closed: dict[str, object] = {"ephemerals": len(gone), "sampled": sampled}
        events = [self._event(txn, Kind.SESSION_CLOSED, PathFacts(), closed)]
        for path in gone:
            detail: dict[str, object] = {"with_session": True, **({"sampled": True} if sampled else {})}
            events.append(self._gone(txn, path, detail))
        return self._kept(events)

    def _held_by(self, session_id: int) -> tuple[str, ...]:
        """The ephemeral znodes that the session created and that were not deleted, by path."""
        return tuple(sorted(path for path, (owner, _) in self._nodes.items() if owner == session_id))

    def _created(self, txn: Transaction) -> list[Event]:
        facts = self._describe(txn.path, txn.data)
        self._nodes[txn.path] = (txn.session_id if txn.ephemeral else 0, facts)
        detail = {"path": txn.path, "data": txn.data.decode("utf-8", "replace"), "ephemeral": txn.ephemeral}
        return [self._event(txn, Kind.CREATED, facts, detail)]

    def _set(self, txn: Transaction) -> list[Event]:
        facts = self._describe(txn.path, txn.data)
        owner = self._nodes[txn.path][0] if txn.path in self._nodes else 0
        self._nodes[txn.path] = (owner, facts)
        detail: dict[str, object] = {"path": txn.path, "data": txn.data.decode("utf-8", "replace")}
        return [self._event(txn, Kind.CHANGED, facts, detail)]

    def _deleted(self, txn: Transaction) -> list[Event]:
        return self._kept([self._gone(txn, txn.path, {})])

    def _gone(self, txn: Transaction, path: str, detail: dict[str, object]) -> Event:
        """The DELETED of one path. For a znode from before the first transaction, only the path is known."""
        owner, facts = self._nodes.pop(path, (0, self._describe(path, b"")))
        found: dict[str, object] = {"path": path, **detail}
        if owner and owner != txn.session_id:
            found["owner"] = session_text(owner)  # the znode belongs to another session
        return self._event(txn, Kind.DELETED, facts, found)

    def _refused(self, txn: Transaction) -> list[Event]:
        return [self._event(txn, Kind.FAILED, PathFacts(), {"code": txn.code})]

    def _kept(self, events: list[Event]) -> list[Event]:
        if self._plant == RecorderBug.LOSES_RELEASES:
            return [event for event in events if event.kind is not Kind.DELETED or event.partition is None]
        return events

    def _event(self, txn: Transaction, kind: Kind, facts: Facts, detail: dict[str, object]) -> Event:
        passed = len(self._passed - {txn.zxid})  # an operation of the same multi may have an event
        self._passed.clear()
        event = Event(
            actor=REGISTRY_ACTOR,
            n=self._n,
            at_us=txn.wall_ms * 1000 - self._offset_us,
            layer=Layer.REGISTRY,
            kind=kind,
            member=facts.member,
            session=session_text(txn.session_id),
            group=facts.group,
            topic=facts.topic,
            partition=facts.partition,
            zxid=txn.zxid,
            detail={"cxid": txn.cxid, **detail, **({"passed": passed} if passed else {})},
        )
        self._n += 1
        return event

    _HANDLERS: ClassVar = {
        TransactionKind.SESSION_OPENED: _opened,
        TransactionKind.SESSION_CLOSED: _closed,
        TransactionKind.CREATE: _created,
        TransactionKind.SET: _set,
        TransactionKind.DELETE: _deleted,
        TransactionKind.ERROR: _refused,
    }
