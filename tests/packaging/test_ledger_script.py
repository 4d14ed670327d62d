"""scripts/ledger.py reports trials in which the runner gave up, and fails; it writes what was measured."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest
from verdict_story import reproduced

from rebalance_lab.analysis.results import Measured

SCRIPT = Path(__file__).parents[2] / "scripts" / "ledger.py"


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch) -> Any:
    spec = importlib.util.spec_from_file_location("ledger_script", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


def test_a_trial_in_which_the_runner_gave_up_is_reported_and_fails_the_sweep(
    ledger: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    never_leaves = {"fetcher_stop_ms": "9000000"}
    monkeypatch.setattr(ledger, "SWEEPS", (ledger.Sweep("leave", ("shipped",), never_leaves, live=0, simulated=1),))
    assert ledger.run(tmp_path, real=False) == 1
    told = capsys.readouterr()
    assert told.err.startswith("failed: leave-simulated-shipped-s1-") and "GaveUp" in told.err
    assert "2 failed" in told.out.splitlines()[-1]
    assert len(list(tmp_path.glob("*/trial.json"))) == 2


def test_what_was_measured_is_a_table(ledger: Any) -> None:
    measured = (
        Measured("live", "c_longest_us", "time", 2, 1_000_000, 1_500_000.0, 2_000_000),
        Measured("simulated", "c_longest_us", "time", 3, 400_000, 400_000.0, 400_000),
        Measured("simulated", "d_count", "messages lost", 3, 0, 1_020.0, 2_000),
    )
    assert ledger.measures([reproduced(), reproduced(measured=measured)]).splitlines()[2:] == [
        "| Z10 | all | time | 1.500 s (1.000 s to 2.000 s) | 0.400 s |",
        "| Z10 | all | messages lost | – | 1,020 (0 to 2,000) |",
    ]
