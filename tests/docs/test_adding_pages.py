"""docs/adding-a-fault.md and docs/adding-a-scenario.md: what they add works, in a copy of the packages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

PROGRAM = """
from rebalance_lab.checks.faults import faults
from rebalance_lab.history.fault_kinds import kind_of
from rebalance_lab.faults.hiccup import hiccup
from rebalance_lab.trials import api
from rebalance_lab.trials.scenario import make_plan, scenario
from pathlib import Path
import sys

late_joiner = sys.modules[scenario("late-joiner").script.__module__]
for control in (True, False):
    print(api.run(make_plan("late-joiner", control=control), Path("trials")).status)

async def leave_and_hiccup(lab, member):
    await hiccup(lab, lab.members[1], 3, 200, 200)

late_joiner.leave = leave_and_hiccup
found = api.run(make_plan("late-joiner", seed=2), Path("trials"))
from rebalance_lab.history.files import load
for each in faults(load(found.folder)):
    print(each.began.of("target"), kind_of(each.began).suffers, each.why_not_bitten)
"""


def blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / page).read_text(), re.MULTILINE | re.DOTALL)


def test_the_fault_and_the_scenario_of_the_pages_work(tmp_path: Path) -> None:
    for package in ("rebalance_lab", "zkconsumer"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "rebalance_lab" / "faults" / "hiccup.py").write_text(blocks("adding-a-fault.md")[0])
    (tmp_path / "rebalance_lab" / "scenarios" / "late_joiner.py").write_text(blocks("adding-a-scenario.md")[0])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    *runs, fault, joined = done.stdout.splitlines()
    assert runs == ["as expected", "as expected"]
    assert (fault, joined.split()[1:]) == ("m2 is stopped for moments None", ["joins", "None"])
