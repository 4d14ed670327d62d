"""Archives of Kafka's classes that cannot be made, or are there. The tier `kafka` makes real ones."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from rebalance_lab.world.kafka import jars, prepared
from rebalance_lab.world.live.java import EmbeddedServerError

ROLE = jars.Role.BROKER


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with the jars of ROLE."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = jars.cache_folder() / ROLE
    folder.mkdir(parents=True)
    (folder / jars.MAIN_JAR[ROLE]).touch()
    return jars.cache_folder()


@pytest.mark.parametrize("error", [EmbeddedServerError("it does not serve"), OSError("no space")])
def test_an_archive_that_cannot_be_made_is_tried_once_and_the_node_starts_without(
    kept: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    tried = []

    def fails(use: object, folder: Path) -> None:
        tried.append(folder)
        raise error

    monkeypatch.setattr(prepared, "_run", fails)
    for _ in range(2):
        prepared.prepare([ROLE])
    assert len(tried) == 1
    assert jars.archive_flags(ROLE) == ()
    assert sorted(each.name for each in kept.iterdir()) == ["archives.lock", ROLE]


def test_an_archive_is_made_once(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flags: list[str] = []

    def runs(use: object, folder: Path) -> None:
        flags.extend(jars.archive_flags(ROLE))
        _, _, path = flags[0].partition("=")
        Path(path).touch()

    monkeypatch.setattr(prepared, "_run", runs)
    for _ in range(2):
        prepared.prepare([ROLE])
    recorded, tried, must_work = flags
    assert recorded.replace("ArchiveClassesAtExit", "SharedArchiveFile") == tried
    assert must_work == "-Xshare:on"
    assert jars.archive_flags(ROLE) == (f"-XX:SharedArchiveFile={jars.archive_of(ROLE)}",)


def test_a_damaged_archive_is_named(kept: Path) -> None:
    path = jars.archive_of(ROLE)
    assert path is not None
    path.write_bytes(b"no archive")
    assert jars.damaged_archive(ROLE, 1) is None
    assert jars.damaged_archive(ROLE, -signal.SIGSEGV) == f"perhaps its archive of classes is damaged: delete {path}"
