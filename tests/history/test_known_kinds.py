"""A process that reads histories knows the kinds of events of all subjects."""

from __future__ import annotations

import subprocess
import sys

_PRINT = "from rebalance_lab.history.events import LAYER_OF; print(*sorted(LAYER_OF))"
_ALL = "from rebalance_lab.trials.scenario import scenario_names; scenario_names()"


def kinds(program: str) -> list[str]:
    """What a fresh Python knows after the program: in this one other tests have imported subjects."""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    return ended.stdout.split()


def test_it_imports_no_subject_for_that() -> None:
    known = kinds(_PRINT)
    assert "broker-reported" in known
    assert known == kinds(f"{_ALL}; {_PRINT}")
