"""docs/adding-a-check.md: whoever follows the page, in a copy of the packages, has a check that works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adding-a-check.md").read_text()

#: The page's python blocks, without the indentation of the list that some stand in.
BLOCKS = [
    re.sub(f"^{indent}", "", block, flags=re.MULTILINE)
    for indent, block in re.findall(r"^( *)```python\n(.*?)^ *```$", PAGE, re.MULTILINE | re.DOTALL)
]

FINDINGS = """
from rebalance_lab.checks import CHECKS, judge
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stages.simulated.stage import simulate
for planted in CHECKS["idle_owner"].plants:
    for plant in (planted.bug, None):
        plan = make_plan(planted.scenario, plant=plant, control=planted.control, settings=planted.settings)
        print(judge(simulate(plan)[0])["idle_owner"].outcome)
"""


def replace(path: Path, text: str, instead: str) -> None:
    old = path.read_text()
    assert old.count(text) == 1, f"{path.name} has {text!r} {old.count(text)} times"
    path.write_text(old.replace(text, instead))


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the packages, with the blocks of the page where the page puts them."""
    check, test, plant, planted = BLOCKS
    copy = tmp_path_factory.mktemp("copy")
    for package in ("rebalance_lab", "zkconsumer"):
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "rebalance_lab" / "checks" / "idle_owner.py").write_text(check)
    (copy / "test_check_idle_owner.py").write_text(test)
    first = '    IGNORE_CLAIM_CONFLICT = "'
    replace(copy / "zkconsumer" / "plants.py", first, plant + first)
    (line,) = re.findall(r"Instead of\s+`([^`]+)`", PAGE)
    replace(copy / "zkconsumer" / "rebalance.py", f"        {line}\n", planted)
    return copy


def python(copy: Path, *arguments: str) -> str:
    path = os.pathsep.join([str(copy), str(ROOT / "tests" / "stories")])
    done = subprocess.run(
        [sys.executable, *arguments],
        check=False,
        cwd=copy,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_tests_of_the_page_pass(copy: Path) -> None:
    assert "4 passed" in python(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_check_idle_owner.py")


def test_the_planted_bug_is_caught(copy: Path) -> None:
    assert python(copy, "-c", FINDINGS).split() == ["violated", "clean"]
