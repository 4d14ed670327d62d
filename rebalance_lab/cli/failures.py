"""From the lab's errors to one line for the user."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import NoReturn

from rebalance_lab.analysis.ledger import Status
from rebalance_lab.cli.at_once import NAME
from rebalance_lab.cli.exit_codes import AS_EXPECTED, SURPRISE, UNKNOWN
from rebalance_lab.history.disk import NO_SPACE
from rebalance_lab.history.files import is_stream
from rebalance_lab.history.recorder import RecorderFailed
from rebalance_lab.kernel.errors import LabError

#: So many of the innermost functions are named where a process stood that had to be ended.
_FRAMES = 6


class Failure(Exception):
    """The command cannot be carried out. The message is for the user; the exit code is 2."""


class CutShort(Exception):
    """A signal has ended a command that had done a part of its work. The message says which, for the user."""


def end_by_force(number: signal.Signals, why: str) -> NoReturn:
    """End this process after a signal, whatever its threads wait for, and say where the main one stood. Its children
    end with it, as after SIGKILL."""
    stood = traceback.extract_stack(sys._current_frames()[threading.main_thread().ident or 0])
    where = " in ".join(
        f"{each.name} ({Path(each.filename).name}:{each.lineno})" for each in stood[: -_FRAMES - 1 : -1]
    )
    with suppress(OSError):  # nobody may read it
        print(
            f"{NAME}: interrupted by {number.name}; {why}; temporary folders that are left go at the next start; it "
            f"stood at {where}",
            file=sys.stderr,
            flush=True,
        )
    os._exit(128 + number)


#: Trials are stored, and pages and tables written, in one rename each.
_FULL = "what was complete before is kept; free some space, or choose another place"


@contextmanager
def spoken() -> Iterator[None]:
    """Turn the lab's own errors, and those of the file system, into Failures."""
    try:
        yield
    except (LabError, RecorderFailed) as error:
        raise Failure(str(error)) from error
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        if error.filename is None and error.errno in NO_SPACE:  # errors of files name them
            raise Failure(f"cannot write to standard output: {error.strerror}") from error
        where = f"{error.filename}: " if error.filename is not None else ""
        then = f"; {_FULL}" if error.errno in NO_SPACE else ""
        raise Failure(f"{where}{error.strerror or error}{then}") from error


def must_be_writable(folder: Path, what: str, instead: str) -> None:
    """Create the folder if it does not exist. Raises Failure, before anything is run, if it cannot be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):  # without a name: other commands may be trying the same store
            pass
    except OSError as error:
        why = f"{folder} is not a folder" if isinstance(error, FileExistsError) else error.strerror
        raise Failure(f"cannot write {what}: {why}; choose {instead}") from error


def must_be_file(file: Path, option: str) -> None:
    """Create the folder of a file that is to be written. Raises Failure, before anything is run, if it cannot be
    written to, or if the file is a folder. `option`: which names the file."""
    if file.is_dir():
        raise Failure(f"{option} {file} is a folder; name a file")
    if not is_stream(file):
        written = Path(os.path.realpath(file)) if file.is_symlink() else file
        must_be_writable(written.parent, f"{option} {file}", "another file")


def exit_code(statuses: Collection[str]) -> int:
    """The exit code for statuses of trials or claims. What was not run does not count."""
    if Status.SURPRISE in statuses:
        return SURPRISE
    return UNKNOWN if Status.UNKNOWN in statuses else AS_EXPECTED
