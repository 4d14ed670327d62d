"""The records in ZooKeeper's transaction log: their types, and what each holds (zookeeper.jute,
the txn section, ZooKeeper 3.4 to 3.9)."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from kazoo.protocol import serialization as wire

from rebalance_lab.history.transactions import Transaction, TransactionKind

_HEADER = struct.Struct("!qiqqi")  # session, cxid, zxid, ms, type
_OPERATION_HEADER = struct.Struct("!ii")  # in a multi: type, length
_DIGEST = struct.Struct("!iq")  # behind a transaction since 3.6 (TxnDigest): version, digest of the tree
_DIGEST_VERSION = 2

_MULTI = 14
_IGNORED = frozenset({7, 16})  # setACL, reconfig: no znode appears, changes its data or goes


class TransactionLogError(Exception):
    """A transaction log that cannot be read. The message names the file and the byte."""


class _Origin(NamedTuple):
    """What the operations of one record share: the first four fields of a Transaction."""

    zxid: int
    session_id: int
    cxid: int
    wall_ms: int


class _Reader:
    """Reads the fields of a record in their order. Raises struct.error when the record ends too early."""

    __slots__ = ("_offset", "_record")

    def __init__(self, record: bytes, offset: int = 0) -> None:
        self._record = record
        self._offset = offset

    @property
    def left(self) -> int:
        """The number of bytes that were not read yet."""
        return len(self._record) - self._offset

    def take(self, layout: struct.Struct) -> tuple[Any, ...]:
        values = layout.unpack_from(self._record, self._offset)
        self._offset += layout.size
        return values

    def number(self) -> int:
        return int(self.take(wire.int_struct)[0])

    def raw(self, length: int | None = None) -> bytes:
        """So many bytes; without `length` a buffer, which begins with its length (-1 for null)."""
        size = max(0, self.number() if length is None else length)
        if size > self.left:
            raise struct.error(f"{size} bytes promised, {self.left} left")
        begin, self._offset = self._offset, self._offset + size
        return self._record[begin : self._offset]

    def text(self) -> str:
        return self.raw().decode("utf-8")

    def skip_acl(self) -> None:
        for _ in range(self.number()):
            self.number()  # permissions
            self.raw()  # scheme
            self.raw()  # id


def transactions_of(record: bytes, where: str) -> tuple[int, tuple[Transaction, ...]]:
    """The zxid of one record, and its transactions: one, or those of a multi.

    Raises TransactionLogError: an unknown type, or a record that is too short for its type.
    """
    reader = _Reader(record)
    try:
        session_id, cxid, zxid, wall_ms, kind = reader.take(_HEADER)
        return zxid, tuple(_operations(_Origin(zxid, session_id, cxid, wall_ms), kind, reader, where))
    except (struct.error, UnicodeDecodeError) as error:
        raise TransactionLogError(f"{where}: a record of {len(record)} bytes that cannot be read: {error}") from error


def _operations(origin: _Origin, code: int, reader: _Reader, where: str) -> list[Transaction]:
    if code == _MULTI:
        return _multi(origin, reader, where)
    if code in _IGNORED:
        return [Transaction(*origin, TransactionKind.OTHER)]
    if code not in _TYPES:
        raise TransactionLogError(
            f"{where}: transaction {origin.zxid:#x} has type {code}, which this lab does not know:"
            " its history would have a hole"
        )
    kind, fields = _TYPES[code]
    return [Transaction(*origin, kind, **fields(reader))]


def _multi(origin: _Origin, reader: _Reader, where: str) -> list[Transaction]:
    """A multi is all or nothing, but the log of one that failed still names the operations before the failure. Each of
    those becomes an ERROR with code 0, as it was undone (DataTree.processTxn)."""
    found: list[Transaction] = []
    for _ in range(reader.number()):
        code, length = reader.take(_OPERATION_HEADER)
        found.extend(_operations(origin, code, _Reader(reader.raw(length)), where))
    if any(each.kind is TransactionKind.ERROR for each in found):
        undone = Transaction(*origin, TransactionKind.ERROR)
        return [each if each.kind is TransactionKind.ERROR else undone for each in found]
    return found


def _create(reader: _Reader) -> dict[str, Any]:
    path, data = reader.text(), reader.raw()
    reader.skip_acl()
    return {"path": path, "data": data, "ephemeral": bool(reader.take(wire.bool_struct)[0])}


def _create_lasting(reader: _Reader) -> dict[str, Any]:
    """Containers and znodes with a time to live are never ephemeral, and have no flag for it."""
    return {"path": reader.text(), "data": reader.raw()}


def _delete(reader: _Reader) -> dict[str, Any]:
    return {"path": reader.text()}


def _removed(reader: _Reader) -> dict[str, Any]:
    """The paths of a CloseSessionTxn (PrepRequestProcessor of ZooKeeper 3.6 to 3.9). `removed` is None if the record
    has none, because the server is older or has `zookeeper.closeSessionTxn.enabled=false`.

    A record without the list may still have a digest. It is as long as a list of one path of four bytes, and begins
    with its version, 2 (DigestCalculator), where the list would say 1.
    """
    size = reader.left
    if size == 0:
        return {}
    count = reader.number()
    if size == _DIGEST.size and count == _DIGEST_VERSION:
        return {}
    paths = tuple([reader.text() for _ in range(count)])
    if reader.left not in (0, _DIGEST.size):
        raise struct.error(f"{reader.left} bytes behind the {count} paths of a session's end")
    return {} if count < 0 else {"removed": paths}  # -1 is jute's null


#: Type in the log -> kind, and what reads its fields.
_TYPES: dict[int, tuple[TransactionKind, Callable[[_Reader], dict[str, Any]]]] = {
    -10: (TransactionKind.SESSION_OPENED, lambda reader: {"timeout_ms": reader.number()}),
    -11: (TransactionKind.SESSION_CLOSED, _removed),
    -1: (TransactionKind.ERROR, lambda reader: {"code": reader.number()}),
    1: (TransactionKind.CREATE, _create),
    15: (TransactionKind.CREATE, _create),  # create2, which also answers with the Stat
    19: (TransactionKind.CREATE, _create_lasting),  # createContainer
    21: (TransactionKind.CREATE, _create_lasting),  # createTTL
    2: (TransactionKind.DELETE, _delete),
    20: (TransactionKind.DELETE, _delete),  # deleteContainer
    5: (
        TransactionKind.SET,
        lambda reader: {"path": reader.text(), "data": reader.raw(), "version": reader.number()},
    ),
    # The log holds the version plus one.
    13: (TransactionKind.CHECK, lambda reader: {"path": reader.text(), "version": reader.number() - 1}),
}
