"""docs/python.md: each of its programs runs as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rebalance_lab.api import Results, create_topic
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text()

PROGRAMS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)

#: Programs in virtual time, and those that need a ZooKeeper.
SIMULATED = [each for each in PROGRAMS if "import zkconsumer" not in each]
LIVE = [each for each in PROGRAMS if "import zkconsumer" in each]


def ran(program: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_page_has_programs() -> None:
    assert (len(SIMULATED), len(LIVE)) == (5, 2)


@pytest.mark.parametrize("program", SIMULATED)
def test_a_program_in_virtual_time(program: str, tmp_path: Path) -> None:
    ran(program, tmp_path)


@pytest.mark.parametrize("program", LIVE)
def test_a_program_with_a_consumer(program: str, embedded_zookeeper: EmbeddedZooKeeper, tmp_path: Path) -> None:
    create_topic(embedded_zookeeper.connect_string, "topic", 1)
    told = ran(program.replace("127.0.0.1:2181", embedded_zookeeper.connect_string), tmp_path)
    assert told.splitlines()[-1].startswith("{'topic': (0")


def test_every_table_is_on_the_page() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    assert tuple(rows) == Results(()).tables
