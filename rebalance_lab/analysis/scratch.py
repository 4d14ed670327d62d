"""The folder of a running Spark, which goes with it; if it was killed, with the next one.

A folder belongs to the process that holds the lock on its file `lock`. Linux lets go of the lock
when that process ends, however it ends: a folder whose lock can be had is nobody's.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PREFIX = "rebalance-lab-spark-"

#: A folder in the making has another name, so that nobody finds it before its lock is taken.
_UNBORN = f".{PREFIX}"
_LOCK = "lock"


@dataclass(frozen=True, slots=True)
class Scratch:
    """`lock`: the open descriptor of the lock's file."""

    folder: Path
    lock: int

    @classmethod
    def make(cls) -> Scratch:
        """A new folder in the system's place for temporary ones; those of the dead there are
        removed first."""
        place = Path(tempfile.gettempdir())
        _remove_orphans(place)
        unborn = Path(tempfile.mkdtemp(prefix=_UNBORN, dir=place))
        lock = os.open(unborn / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = unborn.with_name(unborn.name.removeprefix("."))
        unborn.rename(folder)
        return cls(folder, lock)

    def remove(self) -> None:
        """Remove the folder with all that is in it, then let go of it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self.lock)


def _remove_orphans(place: Path) -> None:
    for folder in place.glob(f"{PREFIX}*"):
        with _dead(folder) as orphan:
            if orphan:
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _dead(folder: Path) -> Iterator[bool]:
    """Whether nobody holds the folder. Not another user's, nor one that has no lock at all."""
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
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
