"""Folders that belong to a process: temporary ones, and trials that are being recorded.

A folder belongs to the process that holds the lock on its file `lock`. Linux releases the lock when that process ends,
however it ends. A folder whose lock can be taken has no owner, and the next command removes it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from rebalance_lab.kernel.interruption import undisturbed

LOCK = "lock"

#: Processes that were killed with the owner of a folder may write to it for some milliseconds more.
_REMOVAL_ATTEMPTS = 100
_REMOVAL_PAUSE_S = 0.02


#: The end of the name of a folder that will replace another.
PART = ".part"


@dataclass(slots=True)
class Scratch:
    """A folder of this process. `lock`: the open descriptor of the lock's file. `is_over`: it has been kept or
    removed."""

    folder: Path
    lock: int
    is_over: bool = False

    @classmethod
    def make(cls, folder: Path, mode: int = 0o777) -> Scratch:
        """A new folder. It gets its name once its lock is taken, so that no other process finds it without. Raises
        OSError."""
        unborn = folder.with_name(f".{folder.name}.{os.getpid()}")
        unborn.mkdir(mode)
        lock = os.open(unborn / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            unborn.rename(folder)
        except BaseException:
            cls(unborn, lock).remove()
            raise
        return cls(folder, lock)

    @classmethod
    def temporary(cls, prefix: str) -> Scratch:
        """A new folder in the system's place for temporary ones. Those of ended processes with the same prefix are
        removed first."""
        place = Path(tempfile.gettempdir())
        for orphan in orphans(place, f"{prefix}*"):
            remove_whole(orphan)
        return cls.make(place / f"{prefix}{os.getpid()}-{time.monotonic_ns():x}", mode=0o700)

    def rename(self, folder: Path) -> None:
        """Raises OSError."""
        self.folder.rename(folder)
        self.folder = folder

    def keep(self) -> None:
        """The folder is finished, and belongs to no process any longer. Others may have deleted it already."""
        self.is_over = True
        (self.folder / LOCK).unlink(missing_ok=True)
        os.close(self.lock)

    def remove(self) -> None:
        """Remove the folder with all that is in it, then let go of it."""
        remove_whole(self.folder)
        self.is_over = True
        os.close(self.lock)


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """A temporary folder for the time of the block. One that a killed process left is removed by the next process that
    asks for the same prefix."""
    with owned(lambda: Scratch.temporary(prefix)) as scratch:
        yield scratch.folder


@contextmanager
def owned(make: Callable[[], Scratch]) -> Iterator[Scratch]:
    """The folder that `make` makes. It is removed at the end of the block, also by a signal that arrives while it is
    made, unless it has been kept or removed in the block."""
    scratch: Scratch | None = None
    try:
        with undisturbed():
            scratch = make()
        yield scratch
    finally:
        if scratch is not None and not scratch.is_over:
            with undisturbed():
                scratch.remove()


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """A new folder beside `folder`, which takes its name and place at the end of the block. If the block fails, the new
    one goes, and the old one stays. Raises OSError."""
    with owned(lambda: Scratch.make(folder.with_name(f".{folder.name}.{os.getpid()}{PART}"))) as part:
        yield part.folder
        if folder.exists():
            shutil.rmtree(folder)
        part.rename(folder)
        part.keep()


def orphans(place: Path, pattern: str) -> Iterator[Path]:
    """The folders there whose process has ended, also if it ended while it made one. While a folder is handed out that
    had got its name, no other process gets it."""
    for lock in place.glob(f"{pattern}/{LOCK}"):
        with _dead(lock) as orphan:
            if orphan:
                yield lock.parent
    yield from (folder for folder in place.glob(f".{pattern}.*") if _is_unborn(folder))


def _is_unborn(folder: Path) -> bool:
    """Whether a process that has ended was about to give this folder its name: such a folder holds its lock at most."""
    _, _, pid = folder.name.rpartition(".")
    if not pid.isdecimal() or psutil.pid_exists(int(pid)) or not folder.is_dir() or folder.is_symlink():
        return False
    with suppress(OSError):  # it is gone, or may not be read
        return {each.name for each in folder.iterdir()} <= {LOCK}
    return False


def is_owned(folder: Path) -> bool:
    """Whether the folder belongs to a process that runs."""
    lock = folder / LOCK
    if not lock.is_file():
        return False
    with _dead(lock) as orphan:
        return not orphan


def remove_whole(folder: Path) -> None:
    """Remove a folder with all that is in it, also if somebody still writes to it for a moment."""
    for _ in range(_REMOVAL_ATTEMPTS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(_REMOVAL_PAUSE_S)


@contextmanager
def _dead(path: Path) -> Iterator[bool]:
    """Whether no process holds the lock. False for a folder of another user, and for a lock that is a link."""
    try:
        lock = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        yield False
    else:
        yield True
    finally:
        os.close(lock)
