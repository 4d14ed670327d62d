"""Which clock a process reads, and how far this host's wall clock is from it.

psutil has no call for the boot id (its `boot_time` is a wall-clock time, which moves when that clock is set) or for the
time namespace.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


def boot_id() -> str:
    """Which boot of which kernel this is. CLOCK_MONOTONIC compares only within one."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def time_namespace() -> str:
    """Which time namespace this process is in: another one may shift CLOCK_MONOTONIC."""
    return os.readlink("/proc/self/ns/time")


def identity() -> dict[str, object]:
    """What a process reports of itself in a history (PROCESS_STARTED)."""
    return {"pid": os.getpid(), "boot_id": boot_id(), "time_namespace": time_namespace()}


def clock_of(told: Mapping[str, object]) -> str:
    """Which CLOCK_MONOTONIC a process reads, from its `identity`: times of processes compare only within one boot and
    one time namespace."""
    return f"{told.get('boot_id')} {told.get('time_namespace')}"


@dataclass(frozen=True, slots=True)
class WallOffset:
    """`offset_us`: wall clock minus CLOCK_MONOTONIC; `error_us`: the largest error of that, either way."""

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
