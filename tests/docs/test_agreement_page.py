"""docs/agreement.md explains what the code does: margins, causes and verdicts are those of scripts/agreement.py."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("agreement_page", ROOT / "scripts" / "agreement.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_explanations_are_up_to_date(script: ModuleType) -> None:
    written = script.PAGE.read_text("utf-8").splitlines()
    expected = script.explanations().splitlines()
    assert written[: len(expected)] == expected, "run: python scripts/agreement.py --store DIR"


def test_an_empty_store_gives_a_page_without_results(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "page.md"
    monkeypatch.setattr("sys.argv", ["agreement.py", "--store", str(tmp_path), "--out", str(out)])
    assert script.main() == 0
    assert out.read_text("utf-8").endswith(f"## Results\n\n{script.NOTHING}\n")
