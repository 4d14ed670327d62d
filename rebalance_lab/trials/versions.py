"""The versions a history was made with."""

from __future__ import annotations

import functools
import platform
from importlib.metadata import PackageNotFoundError, version


@functools.cache
def versions() -> dict[str, str]:
    """Of the lab, Python and the libraries whose behaviour a history depends on."""
    found = {"python": platform.python_version()}
    for package in ("rebalance-lab", "kazoo", "pyspark"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
