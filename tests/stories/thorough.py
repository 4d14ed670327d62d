"""How often tests repeat what chance decides: in every run, and in a thorough one (REBALANCE_LAB_THOROUGH=1)."""

from __future__ import annotations

import os
from typing import TypeVar

import pytest

T = TypeVar("T")

#: Set for a run that has hours.
THOROUGH = bool(os.environ.get("REBALANCE_LAB_THOROUGH"))


#: For tests whose like is in every run: of the same code with another command, setting or world.
only_thorough = pytest.mark.skipif(not THOROUGH, reason="its like runs; REBALANCE_LAB_THOROUGH=1 runs this, too")


def usual(some: T, many: T) -> T:
    """`some` of them in a usual run, and `many` in a thorough one."""
    return many if THOROUGH else some
