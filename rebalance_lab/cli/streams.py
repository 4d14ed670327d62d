"""The standard streams of a process, and what its environment says of them, so that a fault of theirs ends a command as
any other fault does.

This module imports nothing that takes time, as it is used before the commands are loaded.
"""

from __future__ import annotations

import fcntl
import io
import os
import re
import sys
import time
from collections.abc import MutableMapping

#: What a width may be. Programs that format text take COLUMNS=0 literally, and print nothing.
_WIDTH = re.compile(r"[1-9][0-9]{0,4}")

STDOUT, _STDERR = 1, 2


class _Forgetful(io.FileIO):
    """Drops what it cannot write. Of stderr: there is no other place to say so, and the exit code still tells how the
    command ended."""

    said_s = 0.0

    def write(self, data: object) -> int:
        type(self).said_s = time.monotonic()
        size = memoryview(data).nbytes  # type: ignore[arg-type]
        try:
            return super().write(data) or size  # type: ignore[arg-type]
        except OSError:
            return size


def set_up_streams() -> None:
    """For this process, before it opens a file or starts another process."""
    occupy_closed_descriptors()
    sys.stderr = forgetful(_STDERR)
    if sys.stdout is not None and sys.stdout.errors == "strict" and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may lack characters of ours
    forget_impossible_width(os.environ)


def occupy_closed_descriptors() -> None:
    """Let no file get the number of a standard stream that was closed: the processes that are started would take it for
    their own stream."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= _STDERR:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)


def last_said_s() -> float:
    """When this process last wrote to stderr, on the monotonic clock; 0 if it never did."""
    return _Forgetful.said_s


def only_reads(descriptor: int) -> bool:
    """Whether a stream was opened for reading only, as by `1</dev/null`."""
    return fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY


def forgetful(descriptor: int) -> io.TextIOWrapper:
    """Text for a descriptor, as Python's stderr, but what cannot be written is dropped."""
    raw = _Forgetful(descriptor, "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding="utf-8", errors="backslashreplace", line_buffering=True, write_through=True
    )


def forget_impossible_width(environment: MutableMapping[str, str]) -> None:
    """Remove COLUMNS if it is no width. Then the terminal's counts, or ours."""
    if not _WIDTH.fullmatch(environment.get("COLUMNS", "1")):
        del environment["COLUMNS"]
