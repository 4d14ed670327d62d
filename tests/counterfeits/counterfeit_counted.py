"""Trials in which operations are only counted, as they are by default in groups of over 100 members."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import patch

import counterfeit

from rebalance_lab.history.files import History
from rebalance_lab.trials.plan import Plan

_MAKE_PLAN = counterfeit.make_plan


def counted(make: Callable[[int], History]) -> Callable[[int], History]:
    """What makes the same histories with operations counted."""

    def plan(scenario: str, **told: object) -> Plan:
        settings = {**(told.pop("settings", None) or {}), "ops": "counts"}  # type: ignore[dict-item]
        return _MAKE_PLAN(scenario, settings=settings, **told)  # type: ignore[arg-type]

    def made(seed: int) -> History:
        with patch.object(counterfeit, "make_plan", plan):
            return make(seed)

    return made
