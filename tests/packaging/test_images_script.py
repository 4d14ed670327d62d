"""scripts/images and scripts/base-image, with stand-ins for what they call."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


def program(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """As much of one as the scripts see."""
    (tmp_path / "compose" / "zookeeper" / "lib").mkdir(parents=True)
    (tmp_path / "compose" / "zookeeper" / "lib" / "old.jar").write_text("of before")
    (tmp_path / "scripts").mkdir()
    for name in ("images", "base-image"):
        shutil.copy(SCRIPTS / name, tmp_path / "scripts" / name)
    return tmp_path


def run(script: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [script, *arguments],
        check=False,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def jars(checkout: Path) -> list[str]:
    return sorted(each.name for each in (checkout / "compose" / "zookeeper" / "lib").iterdir())


def test_the_build_context_gets_the_jars_of_this_machine(checkout: Path) -> None:
    for name in ("one.jar", "two.jar"):
        (checkout / name).touch()
    python = program(checkout / "python", f"printf '%s\\n' '{checkout}/one.jar' '{checkout}/two.jar'")
    done = run(checkout / "scripts" / "images", "--no-build", "zookeeper", PYTHON=str(python))
    assert done.returncode == 0, done.stderr
    assert jars(checkout) == ["one.jar", "two.jar"]


def test_no_image_is_made_without_jars(checkout: Path) -> None:
    python = program(checkout / "python", "echo no PySpark here >&2; exit 1")
    program(checkout / "bin" / "docker", f"touch '{checkout}/built'")
    path = f"{checkout / 'bin'}:{os.environ['PATH']}"
    done = run(checkout / "scripts" / "images", "zookeeper", PYTHON=str(python), PATH=path)
    assert done.returncode == 1
    assert "no PySpark here" in done.stderr
    assert "found no ZooKeeper jars" in done.stderr
    assert jars(checkout) == ["old.jar"]
    assert not (checkout / "built").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="the script asks for root before it bootstraps")
@pytest.mark.parametrize("works", [True, False], ids=["a whole archive", "half an archive"])
def test_docker_gets_a_whole_base_image_or_none(checkout: Path, works: bool) -> None:
    bin_folder, scratch = checkout / "bin", checkout / "scratch"
    scratch.mkdir()
    program(
        bin_folder / "debootstrap", 'for root; do :; done; mkdir -p "$root/etc"; echo 12 >"$root/etc/debian_version"'
    )
    imported = f"import) cat >'{checkout}/imported' ;;"
    program(bin_folder / "docker", f"case $1 in info) ;; image) exit 1 ;; {imported} esac")
    if not works:
        program(bin_folder / "tar", "echo half; echo no space left >&2; exit 2")
    path = f"{bin_folder}:{os.environ['PATH']}"
    done = run(checkout / "scripts" / "base-image", PATH=path, TMPDIR=str(scratch))
    assert (done.returncode == 0) is works, done.stderr
    assert (checkout / "imported").exists() is works
    assert list(scratch.iterdir()) == [], "nothing of it stays"
