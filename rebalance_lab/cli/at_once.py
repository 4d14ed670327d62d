"""How a process ends on a signal while no command runs: before they are loaded, which takes most of a second, and
after the one that ran. In its last milliseconds, when Python has no handlers any more, it ends with the exit code that
it has.

This module imports nothing that takes time, so that its handlers are set before all else.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from rebalance_lab.cli.exit_codes import UNKNOWN

NAME = "rebalance-lab"

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

#: Commands that run until a signal ends them.
FOREGROUND = ("broker", "cluster", "join", "zookeeper")


def is_foreground(arguments: Sequence[str]) -> bool:
    """Whether the command runs until a signal ends it, so that the signal is its proper end."""
    return command_of(arguments) in FOREGROUND


def command_of(arguments: Sequence[str]) -> str:
    """The command's name; empty if none is given."""
    return next((each for each in arguments if not each.startswith("-")), "")


def not_loaded(error: Exception) -> int:
    """Say that commands cannot be loaded, because memory is short or the installation is broken; the exit code."""
    why = " ".join((type(error).__name__, *str(error).splitlines()[:1]))
    print(f"{NAME}: the commands cannot be loaded: {why}", file=sys.stderr)
    return UNKNOWN


def end_at_once_on_signals() -> None:
    """SIGINT, SIGTERM and SIGHUP end the process at once, with the exit code and the line of later signals: there is
    nothing to undo. A signal that is ignored, as SIGHUP is under nohup, stays so. Main thread only."""
    atexit.register(_ignore)  # the first to be registered is the last to be called
    for each in _SIGNALS:
        if signal.getsignal(each) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(each, _end)


def _ignore() -> None:
    """Python takes handlers away at its end, and what is left then is the signal's own way to end a process."""
    for each in _SIGNALS:
        signal.signal(each, signal.SIG_IGN)


def _end(number: int, _frame: FrameType | None) -> None:
    if is_foreground(sys.argv[1:]):
        os._exit(0)
    told = f"{NAME}: interrupted by {signal.Signals(number).name}; no command was running\n"
    try:
        os.write(2, told.encode())  # sys.stderr may be in use by what the signal has interrupted
    finally:
        os._exit(128 + number)
