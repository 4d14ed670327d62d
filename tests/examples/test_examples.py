"""examples/: each script runs as it stands, and what it prints is worth reading, in 80 columns."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from thorough import only_thorough

EXAMPLES = Path(__file__).parents[2] / "examples"

#: What each prints, in this order; one that is missing here fails.
PRINTED = {
    "every_kill": [
        r" 0\.8\.2 +29 +11 +16 to 26$",
        r" 1\.1 +32 +7 +19 to 25$",
        r" 2\.1 +26 +0 +-$",
        r"kills\.svg",
    ],
    "fault": [r"red +gave up 2, 3|red +gave up 0, 1", r"For \d\.\d{3} s both believed that they owned"],
    "herd": [r" 4 +5 +4 +127 +36$", r" 8 +9 +8 ", r" 16 +17 +16 ", r" 32 +33 +32 "],
    "own_assignor": [r"range: .* = 180  \(as expected\)", r"rendezvous: .* = \d+  \(as expected\)"],
    "placement_spread": [
        r"Kafka's rule: followers",
        r"^1 +0 +2 +2 +2 +2 +2$",
        r"the gap never grows: ",
        r"^1( +0){1,5} +10",
        r"racks 1\+4, 2\+5, 3\+6: ",
        r"^1 +0 +\d +\d +0 +\d +\d$",
        r"spread\.svg",
    ],
    "spark_table": [r"\|scenario\|operation\|per_trial\|", r"\| +leave\| +get\| +\d+\|", r"\| +zombie\| +get\|"],
    "tables_figure": [
        r"14 tables of 18 trials",
        r"fetchers_stop_in +0 ms +100 ms",
        r"500 +0\.06 +0\.6",
        r"2000 +0\.06 +2\.1",
        r"slow\.svg",
    ],
    "sweep_figure": [
        r"25 trials: \{'as expected': 25\}",
        r"0\.5 s +0 of 5 +0\.00 s",
        r"3\.0 s +5 of 5 ",
        r"zombie\.svg",
    ],
}

#: Their like runs: other examples sweep and write tables, and other tests kill a controller at each operation.
ONLY_THOROUGH = ("every_kill", "placement_spread", "tables_figure")


def test_every_example_is_tried_and_named_on_the_page() -> None:
    page = (EXAMPLES.parent / "docs" / "python.md").read_text()
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert names == set(PRINTED)
    assert {name for name in names if f"examples/{name}.py" in page} == names


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=only_thorough if each in ONLY_THOROUGH else ()) for each in sorted(PRINTED)],
)
def test_it_runs_as_it_stands(name: str, tmp_path: Path) -> None:
    script = EXAMPLES / f"{name}.py"
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=115
    )
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    place = 0
    for pattern in PRINTED[name]:
        found = re.compile(pattern, re.MULTILINE).search(done.stdout, place)
        assert found is not None, (pattern, done.stdout)
        place = found.end()
    assert all(picture.read_text().startswith("<svg") for picture in tmp_path.glob("*.svg"))
