"""The example project's tests, run as its owner runs them: by their own pytest, with the plugin that
comes with the lab."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "docs" / "example-project"


def run_example(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        check=False,
        cwd=EXAMPLE,
        env=environment,
        capture_output=True,
        text=True,
        timeout=400,
    )


@pytest.mark.slow
@pytest.mark.timeout(420)
def test_it_passes_on_child_processes() -> None:
    done = run_example()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout


@pytest.mark.docker
@pytest.mark.timeout(420)
@pytest.mark.usefixtures("docker_engine")
def test_it_passes_in_containers() -> None:
    done = run_example("--zookeeper-world", "docker")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("zookeeper_world=moon", "zookeeper_world = moon: it is one of embedded, docker"),
        ("zookeeper_nodes=three", "zookeeper_nodes = three: give a whole number from 1"),
        ("zookeeper_nodes=²", "zookeeper_nodes = ²: give a whole number from 1"),
        ("zookeeper_tick_ms=0", "zookeeper_tick_ms = 0: give a whole number from 1"),
    ],
)
def test_an_option_that_cannot_be_ends_the_run_in_one_line(option: str, says: str) -> None:
    done = run_example("-o", option)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert (done.stdout.strip(), done.stderr.strip()) == ("", f"ERROR: {says}")
