"""scripts/mutants.py prints the score of every module."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "mutants.py"


def test_a_module_without_results_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("mutants_script", SCRIPT)
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.setattr(script, "RESULTS", tmp_path)
    (tmp_path / "waits.json").write_text(json.dumps({"killed": 2, "timeout": 1, "survived": 1}))
    (tmp_path / "constants.json").write_text("{}")
    assert list(script.table(["constants", "deals", "waits"]))[2:] == [
        "| deals | | | not run |",
        "| waits | 4 | 3 | 75.0 % |",
        "| all | 4 | 3 | 75.0 % |",
    ]
