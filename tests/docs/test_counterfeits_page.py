"""docs/counterfeits.md is what scripts/counterfeits.py writes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_page_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("counterfeits_page", ROOT / "scripts" / "counterfeits.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    written = script.PAGE.read_text("utf-8").splitlines()
    assert written == script.page().splitlines(), "run: python scripts/counterfeits.py"
