"""scripts/ledger.py reports trials in which the runner gave up, and fails."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "ledger.py"


def test_a_trial_in_which_the_runner_gave_up_is_reported_and_fails_the_sweep(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    spec = importlib.util.spec_from_file_location("ledger_script", SCRIPT)
    assert spec is not None and spec.loader is not None
    ledger = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, ledger)  # its dataclasses look themselves up there
    spec.loader.exec_module(ledger)
    never_leaves = {"fetcher_stop_ms": "9000000"}
    monkeypatch.setattr(ledger, "SWEEPS", (ledger.Sweep("leave", ("shipped",), never_leaves, live=0, simulated=1),))
    assert ledger.run(tmp_path, real=False) == 1
    told = capsys.readouterr()
    assert told.err.startswith("failed: leave-simulated-shipped-s1-") and "GaveUp" in told.err
    assert "2 failed" in told.out.splitlines()[-1]
    assert len(list(tmp_path.glob("*/trial.json"))) == 2
