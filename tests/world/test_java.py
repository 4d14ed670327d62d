"""Archives of classes: which one a JVM gets, and that it uses it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rebalance_lab.java import Program, archive, archive_flags, installed, make_archive, recorded, tried
from rebalance_lab.world.live.java import EmbeddedServerError, zookeeper_classpath
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper
from scripts import class_archives


@pytest.fixture(autouse=True)
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment without archives."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    return tmp_path / "prefix"


def made(program: Program) -> Path:
    path = archive(program)
    assert path is not None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    return path


def test_without_an_archive_there_are_no_flags() -> None:
    assert archive_flags(Program.SPARK) == ()


def test_a_program_gets_its_own_archive(prefix: Path) -> None:
    path = made(Program.SPARK)
    assert path.is_relative_to(prefix)
    assert archive_flags(Program.SPARK) == (f"-XX:SharedArchiveFile={path}",)
    assert archive_flags(Program.ZOOKEEPER) == ()


def test_another_java_has_another_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(Program.SPARK)
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_bytes(b"")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert archive_flags(Program.SPARK) == ()
    path = made(Program.SPARK)
    assert archive_flags(Program.SPARK) == (f"-XX:SharedArchiveFile={path}",)
    os.utime(java, ns=(1, 1))  # upgraded
    assert archive_flags(Program.SPARK) == ()


@pytest.mark.parametrize(("name", "value"), [("JAVA_HOME", "/nowhere"), ("PATH", "/nowhere")])
def test_without_java_there_is_no_archive(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv(name, value)
    assert archive(Program.SPARK) is None
    assert archive_flags(Program.SPARK) == ()


def test_what_is_recorded_uses_no_archive(tmp_path: Path) -> None:
    made(Program.SPARK)
    with recorded(Program.SPARK, tmp_path / "part"):
        assert archive_flags(Program.SPARK) == (f"-XX:ArchiveClassesAtExit={tmp_path / 'part'}",)
    assert "ArchiveClassesAtExit" not in "".join(archive_flags(Program.SPARK))


def use_zookeeper(folder: Path) -> None:
    EmbeddedZooKeeper.start(folder / "recorded").stop()


@pytest.mark.parametrize("found", [b"", b"no archive"])
def test_an_archive_that_the_jvm_does_not_use_fails_when_it_is_tried(tmp_path: Path, found: bytes) -> None:
    path = tmp_path / "archive"
    path.write_bytes(found)
    with tried(Program.ZOOKEEPER, path), pytest.raises(EmbeddedServerError, match="Unable to use shared archive"):
        EmbeddedZooKeeper.start(tmp_path / "data")


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    part, path = tmp_path / "part", archive(Program.ZOOKEEPER)
    assert path is not None
    with recorded(Program.ZOOKEEPER, part):
        EmbeddedZooKeeper.start(tmp_path / "data").stop()
    path.parent.mkdir(parents=True)
    path.write_bytes(part.read_bytes()[:1_000_000])
    with pytest.raises(EmbeddedServerError, match=rf"is damaged: delete {re.escape(str(path))}, and run scripts/setup"):
        EmbeddedZooKeeper.start(tmp_path / "data")


def test_classes_come_from_the_archive_that_was_made() -> None:
    path = archive(Program.ZOOKEEPER)
    assert path is not None
    earlier = path.with_name("zookeeper-0.jsa")
    path.parent.mkdir(parents=True)
    earlier.touch()
    make_archive(Program.ZOOKEEPER, path, use_zookeeper, class_archives.start_zookeeper)
    assert list(path.parent.iterdir()) == [path]
    java = installed()
    assert java is not None
    flags = [*archive_flags(Program.ZOOKEEPER), "-Xlog:class+load", "-cp", zookeeper_classpath()]
    loaded = subprocess.run([java, *flags, "org.apache.zookeeper.Version"], check=True, capture_output=True, text=True)
    (line,) = [each for each in loaded.stdout.splitlines() if " org.apache.zookeeper.Version source: " in each]
    assert line.endswith("source: shared objects file (top)")


def test_an_archive_that_does_not_work_is_removed() -> None:
    def fails(folder: Path) -> None:
        raise OSError("it does not start")

    path = archive(Program.ZOOKEEPER)
    assert path is not None
    with pytest.raises(OSError, match="it does not start"):
        make_archive(Program.ZOOKEEPER, path, use_zookeeper, fails)
    assert list(path.parent.iterdir()) == []
