"""scripts/with-docker, with a docker and a dockerd of our own: no engine answers, and none starts."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "with-docker"

FAKES = {
    "docker": "exit 1",
    "dockerd": 'ls "$DOCKER_RUN_DIR" >&2; exit 1',  # what it finds is in its last words
    "id": "echo 0",
}


@pytest.fixture
def ended_pid() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def last_words(folder: Path, pid: int) -> str:
    """Of a dockerd that finds this process in its pid file."""
    fakes, run = folder / "bin", folder / "run"
    fakes.mkdir()
    run.mkdir()
    for name, does in FAKES.items():
        (fakes / name).write_text(f"#!/bin/sh\n{does}\n")
        (fakes / name).chmod(0o755)
    (run / "docker.pid").write_text(str(pid))
    environment = {**os.environ, "PATH": f"{fakes}:{os.environ['PATH']}", "DOCKER_RUN_DIR": str(run)}
    ended = subprocess.run(
        [str(SCRIPT), "true"], env=environment, check=False, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 1
    assert "the docker engine did not start" in ended.stderr
    return ended.stderr


@pytest.fixture
def engine_pid(tmp_path: Path) -> Iterator[int]:
    """Of a process that is called dockerd, and does nothing."""
    program = tmp_path / "dockerd"
    shutil.copy(shutil.which("sleep") or "", program)
    process = subprocess.Popen([program, "600"])
    yield process.pid
    process.kill()
    process.wait()


def test_an_engine_that_runs_keeps_its_pid_file(tmp_path: Path, engine_pid: int) -> None:
    """It hangs, or another was asked: that another one finds the file ends that one."""
    assert "docker.pid" in last_words(tmp_path, engine_pid)


def test_a_process_that_has_the_number_of_a_killed_engine_is_none(tmp_path: Path) -> None:
    assert "docker.pid" not in last_words(tmp_path, os.getpid())


def test_what_a_killed_engine_left_is_removed(tmp_path: Path, ended_pid: int) -> None:
    assert "docker.pid" not in last_words(tmp_path, ended_pid)
