"""The versions a history was made with."""

from __future__ import annotations

import functools
import hashlib
import platform
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

#: The lab's own packages, which lie beside each other.
PACKAGES = ("controller", "newcoordinator", "rebalance_lab", "zkconsumer")


@functools.cache
def versions() -> dict[str, str]:
    """The versions of the lab, Python and the libraries that affect a history."""
    found = {"python": platform.python_version()}
    for package in ("rebalance-lab", "kazoo", "pyspark"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def source_digest(wheel: Path | None = None) -> str:
    """SHA-256 over the names and texts of the lab's modules: of the running lab, or of a wheel. Two labs with the
    same digest behave the same. `scripts/images` labels the lab's image with it."""
    found = hashlib.sha256()
    for name, text in sorted(_modules() if wheel is None else _modules_of(wheel)):
        found.update(b"%s %d\n" % (name.encode(), len(text)) + text)
    return found.hexdigest()


def _modules() -> Iterator[tuple[str, bytes]]:
    beside = Path(__file__).parents[2]
    for package in PACKAGES:
        for file in (beside / package).rglob("*.py"):
            yield file.relative_to(beside).as_posix(), file.read_bytes()


def _modules_of(wheel: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".py") and name.partition("/")[0] in PACKAGES:
                yield name, archive.read(name)
