"""A file system that is full soon. Making one needs root."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

#: Set where a test must not be skipped.
REQUIRED = "REBALANCE_LAB_REQUIRE_DISK"


@contextmanager
def small_disk(folder: Path, size_kib: int) -> Iterator[Path]:
    """A file system of that size for the time of the block, in a folder that is made for it. Skips the test where none
    can be mounted, or fails it if REQUIRED is 1."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size_kib}k", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        why = f"a small file system cannot be mounted: {mounted.stderr.strip()}"
        (pytest.fail if os.environ.get(REQUIRED) == "1" else pytest.skip)(why)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)  # a process may close its files later
