"""What the live world needs of Linux: children that die with their parent, process states,
and clocks that can be compared."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

_PR_SET_PDEATHSIG = 1

#: How often a state is looked at again while one waits for it.
POLL_S = 0.002


def bind_worker(parent_pid: int) -> None:
    """For a worker of a pool: it dies with its parent, and leaves Ctrl-C to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    bind_to(parent_pid)


def bind_to(parent_pid: int) -> None:
    """Have the kernel kill this process when its parent dies; called in the child itself, for
    those that `die_with_parent` cannot reach (workers of a pool). Ends at once if it died before.
    """
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"cannot bind process {os.getpid()} to its parent {parent_pid}")
    if os.getppid() != parent_pid:
        os._exit(127)


class RunState(Enum):
    """The third field of /proc/PID/stat (proc(5)), as far as faults care."""

    ALIVE = "alive"  # running, sleeping, waiting for a disk
    STOPPED = "stopped"  # SIGSTOP has taken effect
    GONE = "gone"  # no such process, or a zombie that nobody has waited for


class ProcessStateTimeout(Exception):
    """A process did not reach a state within the bound; the message says which."""


def die_with_parent() -> Callable[[], None]:
    """A `preexec_fn` that has the kernel kill the child when its parent dies, even by kill -9.

    Beware: Linux sends the signal when the parent *thread* that forked dies, not the process.
    Start such children from a thread that lives as long as they should, best the main thread.
    The setting survives exec, but not another fork: grandchildren need it themselves.
    """
    prctl = ctypes.CDLL(None, use_errno=True).prctl  # looked up here: after fork only the call is safe
    parent_pid = os.getpid()

    def in_child() -> None:
        if prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            os._exit(127)
        if os.getppid() != parent_pid:  # the parent died before prctl: no signal will come
            os._exit(127)

    return in_child


def run_state(pid: int) -> RunState:
    """The state of a process right now."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return RunState.GONE
    letter = stat.rpartition(")")[2].split()[0]  # the name before it may hold blanks and brackets
    if letter in "ZX":
        return RunState.GONE
    return RunState.STOPPED if letter == "T" else RunState.ALIVE


def wait_for_state(pid: int, wanted: RunState, timeout_s: float) -> None:
    """Wait until a process is in a state. Raises ProcessStateTimeout."""
    deadline = time.monotonic() + timeout_s
    while (now := run_state(pid)) is not wanted:
        if time.monotonic() > deadline:
            raise ProcessStateTimeout(f"process {pid} is {now.value}, not {wanted.value}, after {timeout_s:g} s")
        time.sleep(POLL_S)


def boot_id() -> str:
    """Which boot of which kernel this is. CLOCK_MONOTONIC compares only within one."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def time_namespace() -> str:
    """Which time namespace this process is in: another one may shift CLOCK_MONOTONIC."""
    return os.readlink("/proc/self/ns/time")


def identity() -> dict[str, object]:
    """What a process tells of itself in a history (HOST_STARTED)."""
    return {"pid": os.getpid(), "boot_id": boot_id(), "time_namespace": time_namespace()}


def clock_of(told: Mapping[str, object]) -> str:
    """Whose CLOCK_MONOTONIC a process reads, from what `identity` tells: times of processes
    compare only within one boot and one time namespace."""
    return f"{told.get('boot_id')} {told.get('time_namespace')}"


@dataclass(frozen=True, slots=True)
class WallOffset:
    """`offset_us`: wall clock minus CLOCK_MONOTONIC; `error_us`: it is right to this, either way."""

    offset_us: int
    error_us: int


def measure_wall_offset(samples: int = 20) -> WallOffset:
    """The host's wall offset, from the sample that took the least time."""
    best: WallOffset | None = None
    for _ in range(samples):
        before_ns = time.monotonic_ns()
        wall_ns = time.time_ns()
        after_ns = time.monotonic_ns()
        half_ns = (after_ns - before_ns) // 2
        sample = WallOffset((wall_ns - before_ns - half_ns) // 1000, half_ns // 1000 + 1)
        if best is None or sample.error_us < best.error_us:
            best = sample
    if best is None:
        raise ValueError(f"cannot measure an offset from {samples} samples")
    return best
