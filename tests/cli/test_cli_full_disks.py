"""Disks that are full under a command: a line with the path and what to do, exit 2, and nothing that was there is lost.

The disk is a tmpfs of some hundred kilobytes, which only root may mount.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cli_tools import LIMIT_S, Ended, Shell, background, end, next_line
from small_disk import small_disk
from thorough import only_thorough

from rebalance_lab.analysis.parquet import FOLDER
from rebalance_lab.history.files import load, trial_folders
from rebalance_lab.report.files import PAGES
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper

pytestmark = [pytest.mark.slow, pytest.mark.timeout(580)]

FULL = "No space left on device; what was complete before is kept; free some space, or choose another place"

#: A simulated trial of this scenario takes about 400 KB.
ROOM_KIB = 700

#: Enough for a Spark to make its folders in, and not enough for what it puts there.
SCRATCH_BYTES = 150 * 1024


@dataclass(frozen=True, slots=True)
class Disk:
    """A small file system. `store`: with one sealed trial."""

    folder: Path

    @property
    def store(self) -> Path:
        return self.folder / "trials"

    def fill(self, *, leave_bytes: int = 0) -> None:
        """Leave no more space than that."""
        with (self.folder / "filler").open("ab", buffering=0) as filler:
            try:
                while filler.write(bytes(4096)):
                    pass
            except OSError:
                filler.truncate(filler.tell() - leave_bytes)

    def grow(self) -> None:
        """Give it more space than anything here needs."""
        subprocess.run(["mount", "-o", "remount,size=1g", str(self.folder)], check=True, capture_output=True)

    def entries(self) -> set[str]:
        """What a user finds in the store, apart from what the lab keeps for itself, which may be deleted."""
        assert [each.name for each in self.store.rglob("*.part")] == []
        assert not list(self.store.glob(f"{FOLDER}/*.parquet*"))
        return {each.name for each in self.store.iterdir()} - {FOLDER, PAGES}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with small_disk(tmp_path / "disk", ROOM_KIB) as folder:
        yield Disk(folder)


@pytest.fixture
def sealed(disk: Disk, shell: Shell) -> str:
    """The name of a trial in the disk's store; not much space is left."""
    assert shell("run", "zombie", "--store", disk.store).code == 0
    (folder,) = trial_folders(disk.store)
    return folder.name


def refused(ended: Ended) -> str:
    """The one line on stderr of a command that could not be carried out."""
    assert ended.code == 2, ended.err
    (line,) = ended.err.splitlines()
    return line.removeprefix("rebalance-lab: ")


def test_run(disk: Disk, sealed: str, shell: Shell) -> None:
    said = refused(shell("run", "zombie", "--seed", 2, "--store", disk.store))
    assert said == f"{disk.store}/zombie-simulated-described-s2: {FULL}"
    assert disk.entries() == {sealed}
    assert len(load(disk.store / sealed).events) > 1000


def test_the_same_trial_again(disk: Disk, sealed: str, shell: Shell) -> None:
    """It would replace the one that is there."""
    said = refused(shell("run", "zombie", "--store", disk.store))
    assert said == f"{disk.store}/{sealed}: {FULL}"
    assert disk.entries() == {sealed}
    assert len(load(disk.store / sealed).events) > 1000


def test_run_live(disk: Disk, sealed: str, shell: Shell) -> None:
    said = refused(shell("run", "zombie", "--world", "processes", "--store", disk.store))
    assert said.startswith(f"{disk.store}/zombie-processes-described-s1-")
    assert said.endswith(FULL)
    assert disk.entries() == {sealed}


def test_nothing_fits_at_all(disk: Disk, sealed: str, shell: Shell) -> None:
    disk.fill()
    for world in ("simulated", "processes"):
        assert FULL in refused(shell("run", "zombie", "--seed", 2, "--world", world, "--store", disk.store))
        assert disk.entries() == {sealed}


def test_sweep(disk: Disk, sealed: str, shell: Shell) -> None:
    said = refused(shell("sweep", "zombie", "--seeds", 20, "--store", disk.store))
    assert f": {FULL}; the trials that are complete are kept in {disk.store}" in said
    assert sealed in disk.entries()
    assert disk.entries() == {each.name for each in trial_folders(disk.store)}
    for each in trial_folders(disk.store):
        load(each)


def test_claims_judge_what_is_there(disk: Disk, sealed: str, shell: Shell) -> None:
    """Only what they keep for the next time does not fit."""
    disk.fill()
    ended = shell("claims", "--json", "--store", disk.store)
    assert (ended.code, ended.err) == (2, "")  # one trial is too few for a verdict
    assert disk.entries() == {sealed}
    disk.grow()
    again = shell("claims", "--json", "--store", disk.store)
    assert again.out == ended.out


@only_thorough
def test_report(disk: Disk, sealed: str, shell: Shell) -> None:
    disk.fill()
    said = refused(shell("report", "--store", disk.store))
    assert said.startswith(str(disk.store))
    assert said.endswith(f".html: {FULL}")
    assert disk.entries() == {sealed}
    out = disk.folder / "page.html"
    assert refused(shell("report", sealed, "--store", disk.store, "--out", out)) == f"{out}: {FULL}"
    assert not out.exists()


@only_thorough
def test_tables(disk: Disk, sealed: str, shell: Shell) -> None:
    disk.fill(leave_bytes=8192)
    before = {each.name for each in disk.folder.iterdir()}
    out = disk.folder / "tables"
    said = refused(shell("tables", "--out", out, "--store", disk.store))
    why = "no space is left on its disk, or on that of the store; make room, or choose another folder with --out"
    assert said == f"{out} was not written: {why}"
    assert {each.name for each in disk.folder.iterdir()} == before
    assert disk.entries() == {sealed}


def test_the_scratch_folder_of_spark(disk: Disk, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "trials"
    assert shell("sweep", "zombie", "--seeds", 3, "--store", store).code == 0
    trials = trial_folders(store)
    disk.fill(leave_bytes=SCRATCH_BYTES)
    monkeypatch.setenv("TMPDIR", str(disk.folder))
    said = refused(shell("claims", "--store", store))
    assert said.startswith(f"{disk.folder}/rebalance-lab-spark-")
    assert said.endswith(FULL)
    assert [each.name for each in disk.folder.iterdir()] == ["filler"]
    assert trial_folders(store) == trials
    for each in trials:
        load(each)


def test_the_event_log_of_spark(disk: Disk, shell: Shell, tmp_path: Path) -> None:
    store = tmp_path / "trials"
    assert shell("sweep", "zombie", "--seeds", 3, "--store", store).code == 0
    disk.fill()
    assert refused(shell("claims", "--store", store, "--event-log", disk.folder)) == f"{disk.folder}: {FULL}"
    assert [each.name for each in disk.folder.iterdir()] == ["filler"]


def test_a_page_that_is_there_stays(disk: Disk, sealed: str, shell: Shell) -> None:
    page = disk.folder / "page.html"
    page.write_text("as it was")
    disk.fill()
    assert refused(shell("report", sealed, "--store", disk.store, "--out", page)) == f"{page}: {FULL}"
    assert page.read_text() == "as it was"


@pytest.mark.parametrize("name", ["zookeeper", "cluster"])
def test_a_server_that_cannot_write(disk: Disk, shell: Shell, name: str) -> None:
    data = disk.folder / "data"
    data.mkdir()
    disk.fill()
    said = refused(shell(name, "--data", data))
    assert said.startswith(str(data))
    assert said.endswith(FULL)


def test_a_broker_ends_and_serves_again_when_there_is_space(
    disk: Disk, fixture_zookeeper: EmbeddedZooKeeper, shell: Shell
) -> None:
    data = disk.folder / "data"
    where = ["broker", "--zookeeper", fixture_zookeeper.connect_string, "--data", data, "--id", 11, "--json"]
    lines = [f"{number:>4} {'x' * 995}\n" for number in range(400)]
    with background(*where) as process:
        at = ["--bootstrap", next_line(process)["bootstrap"], "--topic", "full-disk"]
        assert shell("produce", *at, given="".join(lines[:100])).code == 0
        disk.fill()
        ended = shell("produce", *at, "--timeout-ms", 3000, given="".join(lines[100:]))
        assert ended.code == 2
        assert "; 0 records were written to full-disk-0" in ended.err
        _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 2
    assert f"--data {data}: the broker ends, because its data folder has failed: " in err
    assert "Traceback" not in err
    disk.grow()
    with background(*where) as process:
        at = ["--bootstrap", next_line(process)["bootstrap"], "--topic", "full-disk"]
        assert shell("consume", *at, "--to-end").out == "".join(lines[:100])
        assert end(process, signal.SIGTERM).code == 0
