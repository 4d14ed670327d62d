"""Folders of processes that were killed are removed by the next one; those of the living are not."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rebalance_lab.history.scratch import Scratch, orphans, owned, replacing, temporary_folder
from rebalance_lab.kernel.interruption import Interrupted, interruptible

PREFIX = "rebalance-lab-spark-"

HOLD = """
import sys
from rebalance_lab.history.scratch import Scratch
print(Scratch.temporary('rebalance-lab-spark-').folder, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_it_is_gone_when_it_is_removed(place: Path) -> None:
    scratch = Scratch.temporary(PREFIX)
    assert scratch.folder.name.startswith(PREFIX)
    (scratch.folder / "file").touch()
    scratch.remove()
    assert list(place.iterdir()) == []


def test_what_a_killed_process_left_goes_with_the_next(place: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        mine = Scratch.temporary(PREFIX)
        assert left.is_dir()  # its owner lives
        process.kill()
    assert left.is_dir()
    next_one = Scratch.temporary(PREFIX)
    assert not left.exists()
    assert mine.folder.is_dir() and next_one.folder.is_dir()
    mine.remove()
    next_one.remove()


def test_a_folder_without_a_lock_is_somebody_else_s(place: Path) -> None:
    other = place / f"{PREFIX}other"
    other.mkdir()
    linked = place / f"{PREFIX}linked"
    linked.mkdir()
    (place / "elsewhere").touch()
    (linked / "lock").symlink_to(place / "elsewhere")
    Scratch.temporary(PREFIX).remove()
    assert other.is_dir() and linked.is_dir()


def test_a_temporary_folder_is_its_owner_s_alone_and_goes_with_the_block(place: Path) -> None:
    with temporary_folder(PREFIX) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        assert list(orphans(place, "*")) == []
    assert list(place.iterdir()) == []


def test_a_signal_that_comes_while_it_is_made_removes_it(place: Path) -> None:
    def make() -> Scratch:
        scratch = Scratch.temporary(PREFIX)
        signal.raise_signal(signal.SIGTERM)
        return scratch

    with interruptible(), pytest.raises(Interrupted), owned(make):
        raise AssertionError("the signal is lost")
    assert list(place.iterdir()) == []


def test_a_signal_that_comes_while_it_is_removed_leaves_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    removed = shutil.rmtree

    def signalled(folder: Path, *, ignore_errors: bool) -> None:
        signal.raise_signal(signal.SIGTERM)
        removed(folder, ignore_errors=ignore_errors)

    monkeypatch.setattr("shutil.rmtree", signalled)
    with interruptible(), pytest.raises(Interrupted), temporary_folder(PREFIX) as folder:
        (folder / "file").touch()
    assert list(place.iterdir()) == []


def test_a_folder_that_is_kept_in_the_block_stays(place: Path) -> None:
    with owned(lambda: Scratch.make(place / "part")) as scratch:
        (scratch.folder / "events").touch()
        scratch.rename(place / "trial")
        scratch.keep()
    assert [each.name for each in place.iterdir()] == ["trial"]
    assert [each.name for each in (place / "trial").iterdir()] == ["events"]


def test_a_folder_that_is_kept_belongs_to_no_process(place: Path) -> None:
    scratch = Scratch.make(place / "trial")
    (scratch.folder / "events").touch()
    scratch.keep()
    assert [each.name for each in (place / "trial").iterdir()] == ["events"]
    assert list(orphans(place, "*")) == []


def test_a_name_that_is_taken_leaves_nothing(place: Path) -> None:
    (place / "trial").mkdir()
    (place / "trial" / "events").touch()
    with pytest.raises(OSError, match="not empty"):
        Scratch.make(place / "trial")
    assert [each.name for each in place.iterdir()] == ["trial"]


def test_a_folder_is_replaced_whole(tmp_path: Path) -> None:
    folder = tmp_path / "trial"
    for text in ("first", "second"):
        with replacing(folder) as new:
            (new / text).touch()
        assert [path.name for path in folder.iterdir()] == [text]

    def replaced_on_a_full_disk() -> None:
        with replacing(folder) as new:
            (new / "third").touch()
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        replaced_on_a_full_disk()
    assert [path.name for path in tmp_path.rglob("*")] == ["trial", "second"]


def test_a_folder_that_others_have_deleted_is_kept_no_more(tmp_path: Path) -> None:
    scratch = Scratch.make(tmp_path / "trial")
    shutil.rmtree(scratch.folder)
    scratch.keep()
    assert not scratch.folder.exists()


def ended() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


@pytest.mark.parametrize("locked", [False, True])
def test_a_folder_whose_process_ended_before_it_got_its_name(place: Path, *, locked: bool) -> None:
    unborn = place / f".trial.{ended()}"
    unborn.mkdir()
    if locked:
        (unborn / "lock").touch()
    assert list(orphans(place, "[!.]*")) == [unborn]
    assert list(orphans(place, f"{PREFIX}*")) == [], "another command's"


def test_what_only_looks_like_such_a_folder_stays(place: Path) -> None:
    pid = ended()
    (place / f".trial.{os.getpid()}").mkdir()  # its process runs
    (place / ".trial.part").mkdir()
    (place / f".file.{pid}").touch()
    (place / f".notes.{pid}").mkdir()
    (place / f".notes.{pid}" / "mine").touch()
    assert list(orphans(place, "[!.]*")) == []


def test_the_next_command_removes_it(place: Path) -> None:
    (place / f".{PREFIX}1.{ended()}").mkdir()
    Scratch.temporary(PREFIX).remove()
    assert list(place.iterdir()) == []
