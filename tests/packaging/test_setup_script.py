"""scripts/setup: what it does not do twice, and what it says when it cannot go on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with a blank in its name that holds what the script reads."""
    folder = tmp_path / "some folder"
    (folder / "scripts").mkdir(parents=True)
    for name in ("scripts/setup", "pyproject.toml", "constraints.txt"):
        shutil.copy(PROJECT / name, folder / name)
    return folder


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def set_up(checkout: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run it where apt-get cannot install anything."""
    program(checkout / "bin" / "apt-get", 'echo "no network" >&2; exit 100')
    environment = {**os.environ, "PATH": f"{checkout / 'bin'}:{os.environ['PATH']}", **variables}
    environment.pop("JAVA_HOME", None)
    environment.update({name: value for name, value in variables.items() if name == "JAVA_HOME"})
    return subprocess.run(
        [checkout / "scripts" / "setup", "demo"], env=environment, capture_output=True, text=True, check=False
    )


def made_before(checkout: Path, archives: str = "exit 0") -> None:
    """An environment as the script leaves it, without one. `archives`: what the script that makes them does."""
    script = (PROJECT / "scripts" / "setup").read_text()
    code = script.partition("<<'PYTHON'\n")[2].partition("\nPYTHON\n")[0]
    stamp = subprocess.run(
        [sys.executable, "-c", code], cwd=checkout, capture_output=True, text=True, check=True
    ).stdout
    program(checkout / ".venv" / "bin" / "python", f'[ "$*" = scripts/class_archives.py ] && {archives}; exit 1')
    (checkout / ".venv" / "rebalance-lab.stamp").write_text(stamp)


def test_what_is_done_is_not_done_again(checkout: Path) -> None:
    made_before(checkout)
    program(checkout / "bin" / "java", "echo 'openjdk version \"21.0.2\" 2024-01-16' >&2")
    ended = set_up(checkout, PYTHON=sys.executable)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_without_archives_the_rest_is_set_up(checkout: Path) -> None:
    made_before(checkout, archives="{ echo 'class_archives: none for spark' >&2; exit 1; }")
    program(checkout / "bin" / "java", "echo 'openjdk version \"21.0.2\" 2024-01-16' >&2")
    ended = set_up(checkout, PYTHON=sys.executable)
    assert (ended.returncode, ended.stderr) == (0, "class_archives: none for spark\n")


def test_a_change_of_dependencies_makes_it_anew(checkout: Path) -> None:
    made_before(checkout)
    with (checkout / "constraints.txt").open("a") as file:
        file.write("# another\n")
    python = program(checkout / "bin" / "python3", f'[ "$1" = -m ] && exit 7; exec "{sys.executable}" "$@"')
    ended = set_up(checkout, PYTHON=str(python))
    assert ended.returncode == 7  # it went to make the environment with this Python
    assert "making .venv" in ended.stderr
    assert not (checkout / ".venv").exists()


def test_an_old_python_is_named(checkout: Path) -> None:
    old = program(checkout / "bin" / "python3.9", 'echo "Python 3.9.2"; [ "$1" = --version ]')
    ended = set_up(checkout, PYTHON=str(old))
    assert ended.returncode == 1
    assert "Python 3.11 or newer is needed; " in ended.stderr
    assert "Python 3.9.2" in ended.stderr


@pytest.mark.parametrize("version", ["11.0.22", "1.8.0_402"])
def test_an_old_java_that_cannot_be_replaced(checkout: Path, version: str) -> None:
    made_before(checkout)
    program(checkout / "bin" / "java", f"echo 'openjdk version \"{version}\"' >&2")
    program(checkout / "bin" / "sudo", "exit 1")
    ended = set_up(checkout, PYTHON=sys.executable)
    assert ended.returncode == 1
    assert "Java 17 or newer is needed" in ended.stderr
    assert "apt-get install default-jre-headless" in ended.stderr


def test_a_java_home_without_java(checkout: Path) -> None:
    made_before(checkout)
    ended = set_up(checkout, PYTHON=sys.executable, JAVA_HOME=str(checkout))
    assert ended.returncode == 1
    assert f"JAVA_HOME ({checkout}) holds no Java 17 or newer" in ended.stderr
