"""The files that a run of one tier looks at."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import tiers
from tiers import TESTS, TIERS, may_hold

WORLD = TESTS / "world"


def test_every_tier_is_known() -> None:
    pytest_options = tomllib.loads((TESTS.parent / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert tuple(sorted(each.partition(":")[0] for each in pytest_options["markers"])) == TIERS


@pytest.mark.parametrize(
    ("file", "tier", "expected"),
    [
        ("cli/test_cli_shots.py", "slow", True),
        ("cli/test_cli_shots.py", "docker", False),
        ("world/conformance/test_conformance_nodes.py", "docker", True),  # its conftest.py has the marker
        ("world/conformance/test_conformance_nodes.py", "slow", False),
        ("kernel/test_interruption.py", "slow", False),
    ],
)
def test_a_file_may_hold_the_tests_whose_marker_it_or_its_conftest_names(file: str, tier: str, expected: bool) -> None:
    assert (TESTS / file).exists()
    assert may_hold(TESTS / file, tier) is expected


def test_a_marker_of_another_name_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "TESTS", tmp_path)
    (tmp_path / "test_a.py").write_text("@pytest.mark.slower\n")
    (tmp_path / "conftest.py").write_text("pytest.mark.slow\n")
    assert not may_hold(tmp_path / "test_a.py", "slow")


@pytest.mark.parametrize(("words", "code"), [("mark.docker", 0), ("mark.other", 4)])
def test_a_marker_that_no_run_of_its_tier_would_find_is_an_error(tmp_path: Path, words: str, code: int) -> None:
    """As where it comes from another module."""
    test = tmp_path / "test_hidden.py"
    test.write_text(f"import pytest\npytestmark = getattr(pytest.mark, 'docker')  # {words}\ndef test_it(): pass\n")
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "-m", ""]
    ended = subprocess.run(
        [*command, "-c", str(TESTS.parent / "pyproject.toml"), "-p", "conftest", str(test)],
        capture_output=True,
        text=True,
        check=False,
        cwd=TESTS,
        timeout=100,
    )
    assert ended.returncode == code, ended.stdout + ended.stderr
    assert (code == 0) or "name pytest.mark.docker in it" in ended.stderr
