"""Registry truth: ZooKeeper's transactions, and the events they become.

The source is the server's own transaction log, or the simulated server's tap; both give the
same `Transaction`s. It costs no load, and misses nothing: a watching observer would collapse
two changes into one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, NamedTuple, Protocol

from rebalance_lab.history.events import Event, Kind, Layer, session_text

REGISTRY_ACTOR = "zookeeper"


class TransactionKind(Enum):
    """ZooKeeper's transaction types; the values are its opcodes. A refused write is logged too:
    it takes a zxid."""

    SESSION_OPENED = -10
    SESSION_CLOSED = -11
    ERROR = -1
    CREATE = 1
    DELETE = 2
    SET = 5
    CHECK = 13


@dataclass(frozen=True, slots=True)
class Transaction:
    """One record (a multi gives one for each of its operations, all with its zxid).

    `wall_ms` is the server's clock; `session_id` and `cxid` are those of the request.
    `timeout_ms` belongs to SESSION_OPENED, `code` to ERROR; `data` to CREATE and SET.
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


class PathFacts(NamedTuple):
    """What a path and its payload say, in the history's words."""

    group: str | None = None
    topic: str | None = None
    partition: int | None = None
    member: str | None = None


class Facts(Protocol):
    """The shape of PathFacts, for codecs that know no history (`wire.describe`)."""

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
    """Transactions that no ZooKeeper could have logged: a hole in the log, or a broken tap."""


class RegistryTracker:
    """Turns transactions into registry events, one by one, in zxid order.

    It keeps which znode belongs to which session, so that a closed session yields a DELETED
    event for each ephemeral znode that went with it (same zxid, after SESSION_CLOSED, by path).
    `describe` comes from `wire`: the history itself knows no payloads.
    """

    def __init__(self, *, wall_offset_us: int, describe: Describe, plant: str | None = None) -> None:
        self._offset_us = wall_offset_us
        self._describe = describe
        self._plant = plant
        self._n = 0
        self._zxid = -1
        self._nodes: dict[str, tuple[int, Facts]] = {}

    def feed(self, transaction: Transaction) -> list[Event]:
        """The events of one transaction. Raises ImpossibleTransaction."""
        if transaction.zxid < self._zxid:
            raise ImpossibleTransaction(f"zxid {transaction.zxid:#x} after {self._zxid:#x}")
        self._zxid = transaction.zxid
        handler = self._HANDLERS[transaction.kind]
        return handler(self, transaction)

    def _opened(self, txn: Transaction) -> list[Event]:
        return [self._event(txn, Kind.SESSION_OPENED, PathFacts(), {"timeout_ms": txn.timeout_ms})]

    def _closed(self, txn: Transaction) -> list[Event]:
        gone = sorted(path for path, (owner, _) in self._nodes.items() if owner == txn.session_id)
        events = [self._event(txn, Kind.SESSION_CLOSED, PathFacts(), {"ephemerals": len(gone)})]
        for path in gone:
            _, facts = self._nodes.pop(path)
            events.append(self._event(txn, Kind.DELETED, facts, {"path": path, "with_session": True}))
        return self._kept(events)

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
        owner, facts = self._nodes.pop(txn.path, (0, self._describe(txn.path, b"")))
        detail: dict[str, object] = {"path": txn.path}
        if owner and owner != txn.session_id:
            detail["owner"] = session_text(owner)  # somebody deleted another session's znode
        return self._kept([self._event(txn, Kind.DELETED, facts, detail)])

    def _refused(self, txn: Transaction) -> list[Event]:
        return [self._event(txn, Kind.FAILED, PathFacts(), {"code": txn.code})]

    def _checked(self, txn: Transaction) -> list[Event]:
        return []

    def _kept(self, events: list[Event]) -> list[Event]:
        if self._plant == "recorder-loses-releases":  # planted bug: the check of the recorder must see it
            return [event for event in events if event.kind is not Kind.DELETED or event.partition is None]
        return events

    def _event(self, txn: Transaction, kind: Kind, facts: Facts, detail: dict[str, object]) -> Event:
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
            detail={"cxid": txn.cxid, **detail},
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
        TransactionKind.CHECK: _checked,
    }
