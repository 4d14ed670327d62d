"""Semaphores of pools of processes, named after the process that makes them.

`multiprocessing` removes its semaphores at the end of the process, or its resource tracker does. If all processes are
killed at once (kill -9 of their group), the semaphores stay, and Python's names do not say whose they were.
"""

from __future__ import annotations

import os
from contextlib import suppress
from multiprocessing.process import current_process
from pathlib import Path
from typing import Any

import psutil

_PREFIX = "rebalance-lab-"

#: Where Linux keeps named semaphores, and how their files are called.
_PLACE, _FILE = Path("/dev/shm"), "sem."


def name_semaphores() -> None:
    """From now on this process, and the workers that it starts, name their semaphores after it. Those of processes that
    have ended are removed."""
    process: Any = current_process()
    process._config["semprefix"] = f"/{_PREFIX}{os.getpid()}"  # a short constant otherwise (multiprocessing.process)
    for left in _PLACE.glob(f"{_FILE}{_PREFIX}*"):
        pid, _, _ = left.name.removeprefix(_FILE + _PREFIX).partition("-")
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            with suppress(OSError):  # another user's, or another process was quicker
                left.unlink()
