"""Writes transaction logs as ZooKeeper writes them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable

from rebalance_lab.history.transactions import Transaction, TransactionKind

FILE_HEADER = struct.pack("!4siq", b"ZKLG", 2, 0)
OPEN_TO_ALL = struct.pack("!ii", 1, 31) + b"\0\0\0\5world" + b"\0\0\0\6anyone"
DIGEST = struct.pack("!iq", 2, 4711)  # 3.6 and later put one behind each transaction


def blob(data: bytes | None) -> bytes:
    return struct.pack("!i", -1) if data is None else struct.pack("!i", len(data)) + data


def vector(texts: Iterable[str]) -> bytes:
    """A vector of strings, as jute writes it."""
    found = [blob(text.encode()) for text in texts]
    return struct.pack("!i", len(found)) + b"".join(found)


def body(txn: Transaction) -> bytes:
    """A transaction without its header, as ZooKeeper writes it."""
    path, create_end = blob(txn.path.encode()), OPEN_TO_ALL + bytes([txn.ephemeral]) + struct.pack("!i", 1)
    bodies = {
        TransactionKind.CREATE: lambda: path + blob(txn.data) + create_end,
        TransactionKind.SET: lambda: path + blob(txn.data) + struct.pack("!i", txn.version),
        TransactionKind.CHECK: lambda: path + struct.pack("!i", txn.version + 1),
        TransactionKind.DELETE: lambda: path,
        TransactionKind.ERROR: lambda: struct.pack("!i", txn.code),
        TransactionKind.SESSION_OPENED: lambda: struct.pack("!i", txn.timeout_ms),
        TransactionKind.SESSION_CLOSED: lambda: b"" if txn.removed is None else vector(txn.removed),
    }
    return bodies[txn.kind]()


def record(txn: Transaction, kind: int, content: bytes, digest: bytes = DIGEST) -> bytes:
    payload = struct.pack("!qiqqi", txn.session_id, txn.cxid, txn.zxid, txn.wall_ms, kind) + content + digest
    return struct.pack("!qi", zlib.adler32(payload), len(payload)) + payload + b"B"


def write(txn: Transaction) -> bytes:
    return record(txn, txn.kind.value, body(txn))


def write_multi(parts: list[Transaction]) -> bytes:
    inner = [struct.pack("!ii", part.kind.value, len(body(part))) + body(part) for part in parts]
    return record(parts[0], 14, struct.pack("!i", len(parts)) + b"".join(inner))
