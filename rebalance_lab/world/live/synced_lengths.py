"""How much of each file of an actor was synced: kept beside the files, so that a loss of power can be played on them
after a kill (`lose_power`).

The record is written through the page cache, which outlives `kill -9` as the files do. It holds a slot for each file
that was opened, by its inode number, so that a file keeps its slot when it is renamed.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

from rebalance_lab.kernel import RandomStream
from rebalance_lab.world.power_loss import PowerLoss, surviving
from rebalance_lab.world.storage import RESERVED_NAME

_SLOT = struct.Struct("<QQ")  # inode, synced bytes


class SyncedLengths:
    """The record in one folder, for one life of the actor. Threads may call `note` at once for different files; the
    other methods one at a time."""

    def __init__(self, folder: Path) -> None:
        path = folder / RESERVED_NAME
        there = {each.stat().st_ino for each in _files(folder)}
        self._synced = {inode: synced for inode, synced in _read(path).items() if inode in there}
        self._slots = {inode: number for number, inode in enumerate(self._synced)}
        fresh = path.with_name(f"{RESERVED_NAME}.new")
        fresh.write_bytes(b"".join(_SLOT.pack(*each) for each in self._synced.items()))
        fresh.replace(path)  # at no moment is there half a record
        self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def created(self, inode: int) -> None:
        """A new file: nothing of it is synced."""
        self._slots.setdefault(inode, len(self._slots))
        self.note(inode, 0)

    def found(self, inode: int, length: int) -> None:
        """Note that an existing file is opened. If the record does not have it, another program wrote it, and it counts
        as synced."""
        self._slots.setdefault(inode, len(self._slots))
        self.note(inode, min(self._synced.get(inode, length), length))

    def note(self, inode: int, synced: int) -> None:
        """So many bytes of a file are synced."""
        self._synced[inode] = synced
        os.pwrite(self._descriptor, _SLOT.pack(inode, synced), self._slots[inode] * _SLOT.size)

    def truncated(self, inode: int, length: int) -> None:
        if length < self._synced[inode]:
            self.note(inode, length)

    def close(self) -> None:
        os.close(self._descriptor)


def lose_power(folder: Path, stream: RandomStream, *, everything: bool = False) -> PowerLoss:
    """Cut each file back to a length between its synced and its written one, drawn from `stream`; with `everything` to
    its synced one. No process may have a file open; all that is left counts as synced."""
    record = folder / RESERVED_NAME
    known = _read(record)
    bytes_lost: dict[str, int] = {}
    for file in _files(folder):
        found = file.stat()
        synced = min(known.get(found.st_ino, found.st_size), found.st_size)
        kept = synced + (0 if everything else surviving(stream, found.st_size - synced))
        if kept < found.st_size:
            os.truncate(file, kept)
            bytes_lost[file.relative_to(folder).as_posix()] = found.st_size - kept
    record.unlink(missing_ok=True)
    return PowerLoss(bytes_lost)


def _files(folder: Path) -> list[Path]:
    """Those of the actor, in the order of their paths."""
    return sorted(each for each in folder.rglob("*") if each.is_file() and not each.name.startswith(RESERVED_NAME))


def _read(record: Path) -> dict[int, int]:
    """Inode -> synced bytes."""
    try:
        data = record.read_bytes()
    except FileNotFoundError:
        return {}
    whole = len(data) - len(data) % _SLOT.size
    return dict(_SLOT.iter_unpack(data[:whole]))
