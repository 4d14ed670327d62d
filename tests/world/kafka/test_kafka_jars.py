"""Where real Kafka's jars come from, and what is said where they cannot."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rebalance_lab.world.kafka import jars
from rebalance_lab.world.kafka.jvm import JavaProgram


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def maven(folder: Path, script: str) -> None:
    folder.mkdir()
    program = folder / "mvn"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


#: Copies "jars" to where it is told to, as Maven's plugin does.
COPIES = """
for each in "$@"; do
    case $each in -DoutputDirectory=*) out=${each#*=} ;; --activate-profiles=*) role=${each#*=} ;; esac
done
mkdir -p "$out"
case $role in consumer) touch "$out/kafka_2.10-0.8.2.2.jar" ;; broker) touch "$out/kafka_2.13-3.9.1.jar" ;; esac
touch "$out/other.jar"
echo "$role" >>"$(dirname "$0")/calls"
"""


def test_without_maven_the_message_says_what_to_install(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(jars.KafkaUnavailable, match=r"no mvn in the PATH.*apt-get install maven"):
        jars.class_path(jars.Role.BROKER)
    assert not jars.cache_folder().is_dir() or list(jars.cache_folder().iterdir()) == []


def test_jars_are_fetched_once_and_kept(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maven(empty_cache / "bin", COPIES)
    monkeypatch.setenv("PATH", str(empty_cache / "bin"), prepend=":")
    for _ in range(2):
        path = jars.class_path(jars.Role.CONSUMER)
        assert [Path(each).name for each in path.split(":")] == ["kafka_2.10-0.8.2.2.jar", "other.jar"]
    jars.class_path(jars.Role.BROKER)
    assert (empty_cache / "bin" / "calls").read_text().split() == ["consumer", "broker"]
    assert sorted(each.name for each in jars.cache_folder().iterdir()) == ["broker", "consumer"]


def test_what_maven_said_is_told_and_no_half_folder_is_kept(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maven(empty_cache / "bin", 'echo "[ERROR] no route to the repository"; exit 1')
    monkeypatch.setenv("PATH", str(empty_cache / "bin"), prepend=":")
    with pytest.raises(jars.KafkaUnavailable, match=r"(?s)jars of Kafka's broker.*no route to the repository"):
        jars.class_path(jars.Role.BROKER)
    assert list(jars.cache_folder().iterdir()) == []


def test_a_maven_that_fetched_nothing_is_not_believed(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maven(empty_cache / "bin", "exit 0")
    monkeypatch.setenv("PATH", str(empty_cache / "bin"), prepend=":")
    with pytest.raises(jars.KafkaUnavailable, match=r"fetched no kafka_2\.13-3\.9\.1\.jar"):
        jars.class_path(jars.Role.BROKER)


def test_a_program_without_jars_leaves_no_file(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/java" if name == "java" else None)
    folder = tmp_path / "kafka"
    with pytest.raises(jars.KafkaUnavailable):
        JavaProgram(jars.Role.CONSUMER, "Main", [], folder=folder, name="m1", heap_mb=64)
    assert not folder.exists()
