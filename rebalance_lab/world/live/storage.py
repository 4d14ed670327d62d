"""The port `world.storage` on real files.

Files are read, written and synced in threads, so that the loop that keeps the ZooKeeper session never waits for a
disk. One thread at a time works for each file, in the order of what was asked, and one for names.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from rebalance_lab.kernel import Future, Kernel
from rebalance_lab.world.live.synced_lengths import SyncedLengths
from rebalance_lab.world.storage import (
    RESERVED_NAME,
    File,
    FileBusy,
    FileClosed,
    FolderInUse,
    Listing,
    NotAFolder,
    StorageFailure,
    check_range,
    file_parts,
    parts_of,
    storage_error,
)

T = TypeVar("T")

#: Operations of one actor that run at once. Each may wait for the disk.
_THREADS = 8

#: Operations that a thread carries out before it lets another file have its turn.
_BATCH_LIMIT = 64


def lock_folder(folder: Path) -> int:
    """Let no other process use the folder, until the descriptor that is returned is closed or this process ends. Raises
    FolderInUse."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise FolderInUse("use", str(folder)) from error
    return descriptor


class _Lane:
    """Operations that are carried out one after another, in threads of the pool."""

    def __init__(self, pool: ThreadPoolExecutor, loop: asyncio.AbstractEventLoop, kernel: Kernel) -> None:
        self._pool = pool
        self._loop = loop
        self._kernel = kernel
        self._waiting: deque[tuple[Future[Any], Callable[[], Any], str, str]] = deque()
        self._lock = Lock()
        self._busy = False

    def ask(self, operation: str, path: str, call: Callable[[], T]) -> Future[T]:
        """`call` runs in a thread, and raises OSError or StorageError."""
        future: Future[T] = Future((operation, path))
        future.cause = self._kernel.cause
        with self._lock:
            self._waiting.append((future, call, operation, path))
            idle, self._busy = not self._busy, True
        if idle:
            self._pool.submit(self._work)
        return future

    def _work(self) -> None:
        for _ in range(_BATCH_LIMIT):
            with self._lock:
                if not self._waiting:
                    self._busy = False
                    return
                future, call, operation, path = self._waiting.popleft()
            try:
                value = call()
            except OSError as error:
                self._answer(future.fail, storage_error(error, operation, path))
            except Exception as error:
                self._answer(future.fail, error)
            else:
                self._answer(future.set, value)
        with suppress(RuntimeError):  # the pool was shut down: nobody waits any more
            self._pool.submit(self._work)

    def _answer(self, done: Callable[[Any], bool], outcome: object) -> None:
        self._loop.call_soon_threadsafe(done, outcome)


class LiveStorage:
    """The port `world.storage.Storage` in a folder, which is made when it is first needed.

    `loop` must be the loop of the kernel's AsyncioDriver. `folder`: None for an actor that keeps no files. Close it
    when nothing of the kernel runs any more.
    """

    def __init__(self, kernel: Kernel, loop: asyncio.AbstractEventLoop, folder: Path | None) -> None:
        self._folder = folder
        self._pool = ThreadPoolExecutor(_THREADS, "storage")
        self._new_lane = partial(_Lane, self._pool, loop, kernel)
        self._names = self._new_lane()
        self._synced: SyncedLengths | None = None
        self._locked: int | None = None
        #: By their inodes.
        self._open: dict[int, LiveFile] = {}

    def open(self, path: str, *, create: bool = False) -> Future[File]:
        file_parts(path)
        return self._names.ask("open", path, partial(self._opened, path, create))

    def rename(self, old: str, new: str) -> Future[None]:
        file_parts(old)
        file_parts(new)
        return self._names.ask("rename", f"{old} to {new}", lambda: os.rename(self._at(old), self._at(new)))

    def delete(self, path: str) -> Future[None]:
        file_parts(path)
        return self._names.ask("delete", path, partial(self._delete, path))

    def list(self, folder: str = "") -> Future[Listing]:
        parts_of(folder)
        return self._names.ask("list", folder, partial(self._list, folder))

    def make_folder(self, folder: str) -> Future[None]:
        parts_of(folder)
        return self._names.ask("make folder", folder, partial(self._make_folder, folder))

    def sync_folder(self, folder: str = "") -> Future[None]:
        parts_of(folder)
        return self._names.ask("sync folder", folder, partial(self._sync_folder, folder))

    def close(self) -> None:
        """Wait for what has begun, and drop the rest."""
        self._pool.shutdown(cancel_futures=True)
        for file in tuple(self._open.values()):
            file.release()
        if self._synced is not None:
            self._synced.close()
            self._synced = None
        if self._locked is not None:
            os.close(self._locked)
            self._locked = None

    # -- in a thread ------------------------------------------------------------------------

    def _at(self, path: str) -> Path:
        """Where a path is. The first use makes the folder."""
        if self._folder is None:
            raise StorageFailure("use", path, "this actor was given no folder for its files")
        if self._synced is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._locked = lock_folder(self._folder)
            self._synced = SyncedLengths(self._folder)
        return self._folder / path

    def _opened(self, path: str, create: bool) -> File:
        where = self._at(path)
        assert self._synced is not None, "_at has made it"
        try:
            descriptor, new = os.open(where, os.O_RDWR | os.O_CLOEXEC), False
        except FileNotFoundError:
            if not create:
                raise
            descriptor, new = os.open(where, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644), True
        found = os.fstat(descriptor)
        if found.st_ino in self._open:
            os.close(descriptor)
            raise FileBusy("open", path)
        if new:
            self._synced.created(found.st_ino)
        else:
            self._synced.found(found.st_ino, found.st_size)
        file = LiveFile(self._new_lane(), self._synced, path, descriptor, found, self._closed)
        self._open[found.st_ino] = file
        return file

    def _closed(self, inode: int) -> None:
        del self._open[inode]

    def _delete(self, path: str) -> None:
        where = self._at(path)
        try:
            where.unlink()
        except IsADirectoryError:
            where.rmdir()

    def _list(self, folder: str) -> Listing:
        with os.scandir(self._at(folder)) as entries:
            there = sorted((each.name, each.is_dir()) for each in entries if not each.name.startswith(RESERVED_NAME))
        return Listing(
            tuple(name for name, is_folder in there if not is_folder),
            tuple(name for name, is_folder in there if is_folder),
        )

    def _make_folder(self, folder: str) -> None:
        where = self._at(folder)
        try:
            where.mkdir(exist_ok=True)
        except FileExistsError as error:
            raise NotAFolder("make folder", folder) from error

    def _sync_folder(self, folder: str) -> None:
        descriptor = os.open(self._at(folder), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class LiveFile:
    """The port `world.storage.File`."""

    def __init__(
        self,
        lane: _Lane,
        synced: SyncedLengths,
        path: str,
        descriptor: int,
        found: os.stat_result,
        closed: Callable[[int], None],
    ) -> None:
        self.path = path
        #: As of the last operation that was carried out, which may not be answered yet.
        self.size = found.st_size
        self._lane = lane
        self._synced = synced
        self._descriptor: int | None = descriptor
        self._inode = found.st_ino
        self._closed = closed

    def pread(self, offset: int, length: int) -> Future[bytes]:
        check_range(offset, length)
        return self._ask("read", partial(self._pread, offset, length))

    def append(self, data: bytes) -> Future[int]:
        return self._ask("append", partial(self._append, data))

    def truncate(self, length: int) -> Future[None]:
        check_range(0, length)
        return self._ask("truncate", partial(self._truncate, length))

    def sync(self) -> Future[None]:
        return self._ask("sync", self._sync)

    def close(self) -> Future[None]:
        return self._lane.ask("close", self.path, self.release)

    def release(self) -> None:
        """Close it now, in any thread, while no other works for it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            self._closed(self._inode)

    # -- in a thread ------------------------------------------------------------------------

    def _ask(self, operation: str, call: Callable[[int], T]) -> Future[T]:
        def with_descriptor() -> T:
            if self._descriptor is None:
                raise FileClosed(operation, self.path)
            return call(self._descriptor)

        return self._lane.ask(operation, self.path, with_descriptor)

    def _pread(self, offset: int, length: int, descriptor: int) -> bytes:
        return os.pread(descriptor, max(0, min(length, self.size - offset)), offset)

    def _append(self, data: bytes, descriptor: int) -> int:
        begin, end = self.size, self.size + len(data)
        at = begin
        try:
            while at < end:
                at += os.pwrite(descriptor, memoryview(data)[at - begin :], at)
        except OSError:
            with suppress(OSError):  # the next append would write over what could not be cut off
                os.ftruncate(descriptor, begin)
            raise
        self.size = end
        return begin

    def _truncate(self, length: int, descriptor: int) -> None:
        if length < self.size:
            os.ftruncate(descriptor, length)
            self.size = length
            self._synced.truncated(self._inode, length)

    def _sync(self, descriptor: int) -> None:
        os.fdatasync(descriptor)
        self._synced.note(self._inode, self.size)
