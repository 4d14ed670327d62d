"""The server's own transaction log, which is the exact history of the registry.

Format (FileTxnLog and TxnLogEntry of ZooKeeper 3.4 to 3.9): files `version-2/log.<zxid hex>`; a header of 16 bytes
(`ZKLG`, version 2, database id); then records of checksum (int64, Adler-32 of the bytes), length (int32), the bytes,
and an end mark `B`. The rest of a file is padded with zeros. ZooKeeper 3.6 and later add a digest after each
transaction, which is ignored.
"""

from __future__ import annotations

import os
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

from rebalance_lab.history.transactions import Transaction
from rebalance_lab.world.live.transaction_records import TransactionLogError, transactions_of

FILE_HEADER = struct.Struct("!4siq")  # magic, version, database id
_HEADER_START = b"ZKLG\0\0\0\2"

RECORD_HEADER = struct.Struct("!qi")
END_MARK = 0x42

#: The bytes of a file that are read at a time, unless a record is longer.
WINDOW_BYTES = 1 << 18

#: The longest record: a request may have 1 MB (jute.maxbuffer).
RECORD_LIMIT_BYTES = 1 << 24


@dataclass(frozen=True, slots=True)
class Record:
    """One record with its transactions: none (of an ignored type), one, or several (a multi). It ends before byte `end`
    of its file."""

    zxid: int
    end: int
    transactions: tuple[Transaction, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """What one read of a file gave. `next_offset`: where the next read begins; `wanted_bytes`: how many bytes it needs
    for the next record, as far as is known."""

    records: list[Record]
    next_offset: int
    wanted_bytes: int

    @property
    def transactions(self) -> list[Transaction]:
        return [each for record in self.records for each in record.transactions]


def parse(data: bytes, at: int, where: str) -> Page:
    """The whole records of `data`, which is at byte `at` of a file (0: it begins with the file's header).

    Stops before a last record that is incomplete: zeros, cut off, or still without its end mark. Raises
    TransactionLogError, which names `where`, for anything else that is not a record.
    """
    begin = 0
    if at == 0:
        if _header_is_torn(data):
            return Page([], 0, FILE_HEADER.size)
        if not data.startswith(_HEADER_START):
            raise TransactionLogError(f"{where} begins with {data[:8]!r}: not a transaction log of ZooKeeper's")
        begin = FILE_HEADER.size
    records: list[Record] = []
    wanted = RECORD_HEADER.size
    while begin + RECORD_HEADER.size <= len(data):
        checksum, length = RECORD_HEADER.unpack_from(data, begin)
        body = begin + RECORD_HEADER.size
        end = body + length
        if length <= 0 or end >= len(data) or data[end] != END_MARK:
            if not 0 <= length <= RECORD_LIMIT_BYTES:
                raise TransactionLogError(f"{where}: the record at byte {at + begin} has a length of {length}")
            if data[end:].strip(b"\0"):
                raise TransactionLogError(f"{where}: no record at byte {at + begin}, and more behind it")
            wanted = RECORD_HEADER.size + length + 1
            break
        record = data[body:end]
        if zlib.adler32(record) != checksum:
            raise TransactionLogError(f"{where}: the record at byte {at + begin} has a wrong checksum")
        zxid, transactions = transactions_of(record, f"{where}, byte {at + begin}")
        begin = end + 1
        records.append(Record(zxid, at + begin, transactions))
    return Page(records, at + begin, wanted)


def _header_is_torn(data: bytes) -> bool:
    """Whether a file's header is still being written: a part of it, and then only zeros."""
    if len(data) < FILE_HEADER.size:
        return True
    begun = data[: len(_HEADER_START)].rstrip(b"\0")
    return len(begun) < len(_HEADER_START) and _HEADER_START.startswith(begun) and not data[len(begun) :].strip(b"\0")


class TransactionLog:
    """Follows the log of a live server, across its files.

    `data_dir`: the server's dataDir (its dataLogDir, if it has one).
    """

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / "version-2"
        self._file: Path | None = None
        self._offset = 0

    def poll(self) -> list[Transaction]:
        """What has been logged since the last call, in zxid order.

        Raises TransactionLogError: no log folder, or a file that is broken in its middle.
        """
        if not self.begun:
            raise TransactionLogError(f"{self._folder} is missing: not the data directory of a ZooKeeper that has run")
        return [each for _, record in self.poll_records() for each in record.transactions]

    @property
    def begun(self) -> bool:
        """Whether there is a log folder."""
        return self._folder.is_dir()

    def poll_records(self) -> list[tuple[Path, Record]]:
        """The same as records, each with its file. Empty without a log folder."""
        found: list[tuple[Path, Record]] = []
        for file in self._unread():
            if file != self._file:
                self._file, self._offset = file, 0
            found.extend((file, record) for record in self._read(file))
        return found

    def _unread(self) -> list[Path]:
        """The current file and those after it, listed before any is read. When a later file exists the server has
        flushed the earlier one, so an incomplete record there stays incomplete."""
        files = sorted(self._folder.glob("log.*"), key=_first_zxid)
        current = -1 if self._file is None else _first_zxid(self._file)
        return [file for file in files if _first_zxid(file) >= current]

    def _read(self, file: Path) -> list[Record]:
        """The new records of one file, read a window at a time: it ends with up to 64 MB of padding."""
        found: list[Record] = []
        window = WINDOW_BYTES
        try:
            descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:  # a follower that was ahead of its leader deletes whole files
            return found
        try:
            while True:
                data = os.pread(descriptor, window, self._offset)
                try:
                    page = parse(data, self._offset, str(file))
                except TransactionLogError:
                    # A read that races a write may see its later half first; one that begins now cannot.
                    data = os.pread(descriptor, window, self._offset)
                    page = parse(data, self._offset, str(file))
                found.extend(page.records)
                at_end = len(data) < window or page.wanted_bytes <= window
                if page.next_offset == self._offset and at_end:
                    return found
                window = max(WINDOW_BYTES, page.wanted_bytes)
                self._offset = page.next_offset
        finally:
            os.close(descriptor)


def read(data_dir: Path) -> list[Transaction]:
    """All transactions in a server's log, in zxid order. Raises TransactionLogError."""
    return TransactionLog(data_dir).poll()


def _first_zxid(file: Path) -> int:
    try:
        return int(file.name.removeprefix("log."), 16)
    except ValueError:
        raise TransactionLogError(f"{file} is not named log.<zxid>") from None
