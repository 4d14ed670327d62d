"""How often tests repeat what chance decides: in every run, and in a thorough one (REBALANCE_LAB_THOROUGH=1)."""

from __future__ import annotations

import os
from typing import TypeVar

import pytest

T = TypeVar("T")

#: Set for a run that has hours.
THOROUGH = bool(os.environ.get("REBALANCE_LAB_THOROUGH"))

#: For tests that differ from one in every run by the command, the setting or the world only.
only_thorough = pytest.mark.skipif(
    not THOROUGH, reason="a similar test runs; REBALANCE_LAB_THOROUGH=1 runs this one, too"
)


def usual(some: T, many: T) -> T:
    """`some` of them in a usual run, and `many` in a thorough one."""
    return many if THOROUGH else some
