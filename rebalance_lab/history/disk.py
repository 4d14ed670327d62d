"""Disks without space: which file was being written, and whether that is why something failed."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

#: No space is left, or the user's quota is used up.
NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})

#: A process that needs less than this would not have failed.
_ROOM_BYTES = 1 << 16


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Within the block a file is written: an OSError that names no file, as those of `write`, is raised with this
    one."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error


def is_for_want_of_space(error: BaseException, folder: Path) -> bool:
    """Whether something failed because the disk of `folder` is full: the error says so, be it another process's, or
    there is hardly any space left."""
    if (isinstance(error, OSError) and error.errno in NO_SPACE) or os.strerror(errno.ENOSPC) in str(error):
        return True
    try:
        with TemporaryFile(dir=folder, buffering=0) as file:
            return file.write(bytes(_ROOM_BYTES)) < _ROOM_BYTES
    except OSError as probed:
        return probed.errno in NO_SPACE


def no_space(path: Path) -> OSError:
    """The error of a file, or of the files of a folder, for which there is no space."""
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
