"""The port to a disk. One actor's files stand in one folder, and outlive its processes.

What a file operation guarantees, in every world:

- It is carried out after those that were asked of the same file before. `open`, `rename`, `delete`, `list`,
  `make_folder` and `sync_folder` are carried out in their order, too. Nothing is said about the order between two
  files, or between a file and its folder: await the one before asking for the other.
- The end of a process (kill -9) loses nothing that was answered. Of what was not answered some may be done, and an
  append may have written a part of its bytes.
- The end of the machine (`world.power_loss`) keeps what was synced: of a file its bytes, by `File.sync`, and of a
  folder its names, by `sync_folder`. It keeps any part of the rest, from its beginning on.

Paths are relative to the actor's folder, with slashes: `topic-0/00000000000000000000.log`; the folder itself is "".
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import Protocol

from rebalance_lab.kernel import Future

#: The name, in an actor's folder, of a file that is the world's own (`live.synced_lengths`).
RESERVED_NAME = ".synced-lengths"


class StorageError(Exception):
    """An operation failed, and has changed nothing. `path` is relative to the actor's folder."""

    hint = ""

    def __init__(self, operation: str, path: str, why: str = "") -> None:
        reason = why or self.hint
        super().__init__(f"{type(self).__name__}: {operation} {path or '.'}{f': {reason}' if reason else ''}")
        self.operation = operation
        self.path = path


class NoSuchFile(StorageError):
    """There is no such file or folder, or no folder that it could stand in."""


class IsAFolder(StorageError):
    """A folder stands where a file was meant."""


class NotAFolder(StorageError):
    """A file stands where a folder was meant."""


class FolderNotEmpty(StorageError):
    pass


class DiskFull(StorageError):
    hint = "no space is left on the device; free some and start again"


class FolderInUse(StorageError):
    hint = "another process keeps its files in this folder; end it, or give this one a folder of its own"


class FileBusy(StorageError):
    hint = "it is open already, and a file is open once at a time"


class FileClosed(StorageError):
    hint = "this file was closed by its owner"


class StorageFailure(StorageError):
    """The operating system reports another error. After a failed `sync` nobody knows what was kept."""


_BY_ERRNO: dict[int, type[StorageError]] = {
    errno.ENOENT: NoSuchFile,
    errno.EISDIR: IsAFolder,
    errno.ENOTDIR: NotAFolder,
    errno.ENOTEMPTY: FolderNotEmpty,
    errno.EEXIST: FolderNotEmpty,  # rename(2) may say so of a folder that is not empty
    errno.ENOSPC: DiskFull,
    errno.EDQUOT: DiskFull,
}


def storage_error(error: OSError, operation: str, path: str) -> StorageError:
    """The port's error for one of the operating system."""
    kind = _BY_ERRNO.get(error.errno or 0)
    return kind(operation, path) if kind is not None else StorageFailure(operation, path, error.strerror or str(error))


def parts_of(path: str) -> tuple[str, ...]:
    """The names that a path consists of; none for the actor's folder. Raises ValueError for a path that is not
    relative, has an empty part, `.` or `..`, or names the world's own file."""
    if path == "":
        return ()
    parts = tuple(path.split("/"))
    if any(part in ("", ".", "..", RESERVED_NAME) or "\0" in part for part in parts):
        raise ValueError(f"{path!r} is no path below an actor's folder: give names, with slashes between them")
    return parts


def file_parts(path: str) -> tuple[str, ...]:
    """As `parts_of`. Raises ValueError for the actor's folder itself, too."""
    parts = parts_of(path)
    if not parts:
        raise ValueError("the path is empty: it names the actor's folder, which cannot be opened, renamed or deleted")
    return parts


def check_range(offset: int, length: int) -> None:
    """Raises ValueError for a range of bytes that no file has."""
    if offset < 0 or length < 0:
        raise ValueError(f"{length} bytes at offset {offset}: neither may be negative")


@dataclass(frozen=True, slots=True)
class Listing:
    """What a folder holds: names, sorted."""

    files: tuple[str, ...]
    folders: tuple[str, ...]


class File(Protocol):
    """An open file. It stays this file when it is renamed, and readable and writable when it is deleted."""

    @property
    def path(self) -> str:
        """The path by which it was opened."""
        ...

    @property
    def size(self) -> int:
        """Its length in bytes, with all that was answered, and perhaps some of what was asked."""
        ...

    def pread(self, offset: int, length: int) -> Future[bytes]:
        """The bytes from `offset` on, fewer than `length` only at the end of the file."""
        ...

    def append(self, data: bytes) -> Future[int]:
        """Write at the end. Returns the offset at which `data` begins. After an error no byte of it stays."""
        ...

    def truncate(self, length: int) -> Future[None]:
        """Cut the file to `length` bytes. One that is not longer stays as it is."""
        ...

    def sync(self) -> Future[None]:
        """Make the bytes outlive a loss of power. The name outlives it only after a `sync_folder`."""
        ...

    def close(self) -> Future[None]:
        """Done after all that was asked before. It makes nothing durable. Again: nothing happens."""
        ...


class Storage(Protocol):
    """The files of one actor. Futures fail with StorageErrors; a path that cannot be one raises ValueError."""

    def open(self, path: str, *, create: bool = False) -> Future[File]:
        """Open a file, to read and to append. `create`: make it if it is not there. Fails with NoSuchFile, IsAFolder
        and FileBusy."""
        ...

    def rename(self, old: str, new: str) -> Future[None]:
        """Give a file or a folder another name. A file, or an empty folder, that has the name is replaced, all at
        once."""
        ...

    def delete(self, path: str) -> Future[None]:
        """Delete a file or an empty folder. Fails with NoSuchFile and FolderNotEmpty."""
        ...

    def list(self, folder: str = "") -> Future[Listing]: ...

    def make_folder(self, folder: str) -> Future[None]:
        """Make a folder in one that is there. One that is there already stays as it is."""
        ...

    def sync_folder(self, folder: str = "") -> Future[None]:
        """Make what was created, renamed and deleted in `folder` outlive a loss of power."""
        ...
