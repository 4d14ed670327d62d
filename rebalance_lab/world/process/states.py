"""States of OS processes on Linux, and children that die with their parent.

psutil reads states of processes. It has no call for the rest: the death signal of a parent (prctl), and a wait for a
state other than the end.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable
from enum import Enum

import psutil

_PR_SET_PDEATHSIG = 1

#: The time between two looks at a state that is waited for.
POLL_S = 0.002


def bind_worker(parent_pid: int) -> None:
    """For a worker of a pool: it dies with its parent, and ignores the signals of a terminal, which its parent
    handles. The pool itself ends its workers by SIGTERM."""
    for each in (signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    die_with_parent(parent_pid)()


def die_with_parent(parent_pid: int | None = None) -> Callable[[], None]:
    """A `preexec_fn` that has the kernel kill the child when its parent dies, even by kill -9. The
    child exits with 127 if its parent died before. `parent_pid`: left out, this process is the parent.

    Beware: Linux sends the signal when the parent *thread* that forked dies, not the process.
    Start such children from a thread that lives as long as they should, best the main thread.
    The setting survives exec, but not another fork: grandchildren need it themselves.
    """
    prctl = ctypes.CDLL(None).prctl  # looked up here: after fork only the call is safe
    parent = parent_pid or os.getpid()

    def in_child() -> None:
        bound = prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) == 0
        if not bound or os.getppid() != parent:  # the parent died before prctl: no signal will come
            os._exit(127)

    return in_child


class RunState(Enum):
    """The state of a process, as far as faults care."""

    ALIVE = "alive"  # running, sleeping, waiting for a disk
    STOPPED = "stopped"  # SIGSTOP has taken effect
    GONE = "gone"  # no such process, or a zombie that nobody has waited for


class ProcessStateTimeout(Exception):
    """A process did not reach a state within the bound; the message says which."""


def run_state(pid: int) -> RunState:
    """The state of a process right now: the third field of /proc/PID/stat (proc(5))."""
    try:
        status = psutil.Process(pid).status()
    except psutil.NoSuchProcess:
        return RunState.GONE
    if status in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
        return RunState.GONE
    return RunState.STOPPED if status == psutil.STATUS_STOPPED else RunState.ALIVE


def wait_for_state(pid: int, wanted: RunState, timeout_s: float) -> None:
    """Wait until a process is in a state. Raises ProcessStateTimeout."""
    deadline = time.monotonic() + timeout_s
    while (now := run_state(pid)) is not wanted:
        if time.monotonic() > deadline:
            raise ProcessStateTimeout(f"process {pid} is {now.value}, not {wanted.value}, after {timeout_s:g} s")
        time.sleep(POLL_S)
