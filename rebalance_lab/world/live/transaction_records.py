"""The records in ZooKeeper's transaction log: their types, and what each holds (zookeeper.jute,
the txn section, ZooKeeper 3.4 to 3.9)."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

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


def transactions_of(record: bytes, where: str) -> tuple[int, tuple[Transaction, ...]]:
    """The zxid of one record, and its transactions: one, or those of a multi.

    Raises TransactionLogError: an unknown type, or a record that is too short for its type.
    """
    try:
        session_id, cxid, zxid, wall_ms, kind = _HEADER.unpack_from(record)
        return zxid, tuple(_operations(_Origin(zxid, session_id, cxid, wall_ms), kind, record, _HEADER.size, where))
    except (struct.error, UnicodeDecodeError) as error:
        raise TransactionLogError(f"{where}: a record of {len(record)} bytes that cannot be read: {error}") from error


def _operations(origin: _Origin, kind: int, record: bytes, offset: int, where: str) -> list[Transaction]:
    if kind == _MULTI:
        return _multi(origin, record, offset, where)
    if kind in _IGNORED:
        return [Transaction(*origin, TransactionKind.OTHER)]
    reader = _READERS.get(kind)
    if reader is None:
        raise TransactionLogError(
            f"{where}: transaction {origin.zxid:#x} has type {kind}, which this lab does not know:"
            " its history would have a hole"
        )
    return [reader(origin, record, offset)]


def _multi(origin: _Origin, record: bytes, offset: int, where: str) -> list[Transaction]:
    """A multi is all or nothing, but the log of one that failed still names the operations
    before the failure: each of those becomes an ERROR with code 0 (undone), as in DataTree."""
    (count,) = wire.int_struct.unpack_from(record, offset)
    offset += wire.int_struct.size
    found: list[Transaction] = []
    for _ in range(count):
        kind, length = _OPERATION_HEADER.unpack_from(record, offset)
        offset += _OPERATION_HEADER.size
        found.extend(_operations(origin, kind, record[: offset + length], offset, where))
        offset += length
    if any(each.kind is TransactionKind.ERROR for each in found):
        undone = Transaction(*origin, TransactionKind.ERROR)
        return [each if each.kind is TransactionKind.ERROR else undone for each in found]
    return found


def _text(record: bytes, offset: int) -> tuple[str, int]:
    raw, offset = _bytes(record, offset)
    return raw.decode("utf-8"), offset


def _bytes(record: bytes, offset: int) -> tuple[bytes, int]:
    (length,) = wire.int_struct.unpack_from(record, offset)
    offset += wire.int_struct.size
    if length <= 0:  # -1 is null
        return b"", offset
    if offset + length > len(record):
        raise struct.error(f"{length} bytes promised, {len(record) - offset} left")
    return record[offset : offset + length], offset + length


def _after_acl(record: bytes, offset: int) -> int:
    (count,) = wire.int_struct.unpack_from(record, offset)
    offset += wire.int_struct.size
    for _ in range(count):
        offset += wire.int_struct.size  # permissions
        _, offset = _bytes(record, offset)  # scheme
        _, offset = _bytes(record, offset)  # id
    return offset


def _create(origin: _Origin, record: bytes, offset: int) -> Transaction:
    path, offset = _text(record, offset)
    data, offset = _bytes(record, offset)
    (ephemeral,) = wire.bool_struct.unpack_from(record, _after_acl(record, offset))
    return Transaction(*origin, TransactionKind.CREATE, path=path, data=data, ephemeral=bool(ephemeral))


def _create_lasting(origin: _Origin, record: bytes, offset: int) -> Transaction:
    """Containers and znodes with a time to live: never ephemeral, no flag for it."""
    path, offset = _text(record, offset)
    data, _ = _bytes(record, offset)
    return Transaction(*origin, TransactionKind.CREATE, path=path, data=data)


def _delete(origin: _Origin, record: bytes, offset: int) -> Transaction:
    return Transaction(*origin, TransactionKind.DELETE, path=_text(record, offset)[0])


def _set(origin: _Origin, record: bytes, offset: int) -> Transaction:
    path, offset = _text(record, offset)
    data, offset = _bytes(record, offset)
    (version,) = wire.int_struct.unpack_from(record, offset)
    return Transaction(*origin, TransactionKind.SET, path=path, data=data, version=version)


def _check(origin: _Origin, record: bytes, offset: int) -> Transaction:
    path, offset = _text(record, offset)
    (logged,) = wire.int_struct.unpack_from(record, offset)
    return Transaction(*origin, TransactionKind.CHECK, path=path, version=logged - 1)  # the log holds one more


def _error(origin: _Origin, record: bytes, offset: int) -> Transaction:
    (code,) = wire.int_struct.unpack_from(record, offset)
    return Transaction(*origin, TransactionKind.ERROR, code=code)


def _session_opened(origin: _Origin, record: bytes, offset: int) -> Transaction:
    (timeout_ms,) = wire.int_struct.unpack_from(record, offset)
    return Transaction(*origin, TransactionKind.SESSION_OPENED, timeout_ms=timeout_ms)


def _session_closed(origin: _Origin, record: bytes, offset: int) -> Transaction:
    return Transaction(*origin, TransactionKind.SESSION_CLOSED, removed=_removed(record, offset))


def _removed(record: bytes, offset: int) -> tuple[str, ...] | None:
    """The paths of a CloseSessionTxn (PrepRequestProcessor of ZooKeeper 3.6 to 3.9); None where the
    record holds none: the server is older, or has `zookeeper.closeSessionTxn.enabled=false`.

    A record without the list may still have a digest. It is as long as a list of one path of four
    bytes, and begins with its version, 2 (DigestCalculator), where the list would say 1.
    """
    left = len(record) - offset
    if left == 0:
        return None
    (count,) = wire.int_struct.unpack_from(record, offset)
    if left == _DIGEST.size and count == _DIGEST_VERSION:
        return None
    offset += wire.int_struct.size
    paths: list[str] = []
    for _ in range(count):
        path, offset = _text(record, offset)
        paths.append(path)
    if len(record) - offset not in (0, _DIGEST.size):
        raise struct.error(f"{len(record) - offset} bytes behind the {count} paths of a session's end")
    return None if count < 0 else tuple(paths)  # -1 is jute's null


_READERS: dict[int, Callable[[_Origin, bytes, int], Transaction]] = {
    TransactionKind.SESSION_OPENED.value: _session_opened,
    TransactionKind.SESSION_CLOSED.value: _session_closed,
    TransactionKind.ERROR.value: _error,
    TransactionKind.CREATE.value: _create,
    15: _create,  # create2, which also answers with the Stat
    19: _create_lasting,  # createContainer
    21: _create_lasting,  # createTTL
    TransactionKind.DELETE.value: _delete,
    20: _delete,  # deleteContainer
    TransactionKind.SET.value: _set,
    TransactionKind.CHECK.value: _check,
}
