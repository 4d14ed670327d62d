"""Stores that are broken, or that change while a command reads or writes them: one line and 2, never a traceback.

What `claims` and `report` do with such trials is in tests/analysis/test_imperfect_stores.py.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli_tools import CommandLine

from rebalance_lab.history.files import TRIAL_FILE, load, trial_folders
from rebalance_lab.history.scratch import remove_whole

pytestmark = [pytest.mark.slow, pytest.mark.timeout(580)]

NAME = "zombie-simulated-described-s1"


def _cut(trial: Path) -> None:
    (trial / TRIAL_FILE).write_bytes((trial / TRIAL_FILE).read_bytes()[:100])


def _empty(trial: Path) -> None:
    (trial / TRIAL_FILE).write_bytes(b"")


def _other_bytes(trial: Path) -> None:
    (trial / TRIAL_FILE).write_bytes(bytes(range(256)))


def _is_a_folder(trial: Path) -> None:
    (trial / TRIAL_FILE).unlink()
    (trial / TRIAL_FILE).mkdir()


def _unsealed(trial: Path) -> None:
    (trial / TRIAL_FILE).unlink()


def _without_events(trial: Path) -> None:
    (trial / "events.jsonl").unlink()


def _events_are_a_folder(trial: Path) -> None:
    (trial / "events.jsonl").unlink()
    (trial / "events.jsonl").mkdir()


def _events_cut(trial: Path) -> None:
    events = (trial / "events.jsonl").read_bytes()
    (trial / "events.jsonl").write_bytes(events[: len(events) // 2])


def _junk_among_events(trial: Path) -> None:
    with (trial / "events.jsonl").open("ab") as events:
        events.write(b"\x00junk\n")


def _loop_of_links(trial: Path) -> None:
    (trial / "events.jsonl").unlink()
    (trial / "events.jsonl").symlink_to("events.jsonl")


def _gone(trial: Path) -> None:
    shutil.rmtree(trial)


DAMAGES = (
    *(_cut, _empty, _other_bytes, _is_a_folder, _unsealed, _gone),
    *(_without_events, _events_are_a_folder, _events_cut, _junk_among_events, _loop_of_links),
)


@pytest.fixture
def store(command: CommandLine, tmp_path: Path) -> Path:
    assert command("run", "zombie", "--store", tmp_path / "trials").code == 0
    return tmp_path / "trials"


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda each: each.__name__.removeprefix("_"))
def test_a_broken_trial_is_named_by_whoever_reads_it(
    command: CommandLine, store: Path, damage: Callable[[Path], None]
) -> None:
    damage(store / NAME)
    before = sorted(store.rglob("*"))
    for arguments in (
        ("history", "show", NAME),
        ("history", "compare", NAME, NAME),
        ("replay", NAME),
        ("replay", NAME, "--until", 3),
        ("shrink", NAME, "--check", "belief_overlap"),
        ("report", NAME),
    ):
        assert NAME in command.refused(*arguments, "--store", store), arguments
        assert sorted(store.rglob("*")) == before


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda each: each.__name__.removeprefix("_"))
def test_running_it_again_mends_it(command: CommandLine, store: Path, damage: Callable[[Path], None]) -> None:
    whole = load(store / NAME)
    damage(store / NAME)
    assert command("sweep", "zombie", "--seeds", 2, "--store", store).code == 0
    assert load(store / NAME) == whole
    assert len(trial_folders(store)) == 2


@contextmanager
def meanwhile(work: Callable[[], object]) -> Iterator[None]:
    """Do this again and again in another thread."""
    over = threading.Event()

    def repeat() -> None:
        while not over.is_set():
            work()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_trial_is_stored_anew_while_it_is_read(command: CommandLine, store: Path, tmp_path: Path) -> None:
    """As by `run` with the same settings: it is there as a whole, or for a moment it is not there."""
    whole = command("history", "show", NAME, "--json", "--store", store).out
    kept = shutil.copytree(store / NAME, tmp_path / "kept")

    def store_anew() -> None:
        part = shutil.copytree(kept, store / f".{NAME}.part")
        shutil.rmtree(store / NAME)
        part.rename(store / NAME)

    codes = set()
    with meanwhile(store_anew):
        for _ in range(30):
            ended = command("history", "show", NAME, "--json", "--store", store)
            codes.add(ended.code)
            if ended.code == 0:
                assert (ended.out, ended.err) == (whole, "")
            else:
                assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
                assert NAME in ended.err
    assert codes <= {0, 2}


def test_a_store_is_deleted_while_it_is_written(command: CommandLine, tmp_path: Path) -> None:
    """A sweep goes on, and names each trial that was gone before it was judged."""
    store = tmp_path / "trials"

    def delete() -> None:
        for each in trial_folders(store):
            remove_whole(each)

    with meanwhile(delete):
        ended = command("sweep", "herd", "--seeds", 40, "--json", "--store", store)
    lines = [json.loads(line) for line in ended.out.splitlines()]
    failed = [each for each in lines if each["status"] == "failed"]
    assert len({each["trial"] for each in lines}) == 40, ended.err
    assert ended.code == (2 if failed else 0)
    assert all(each["why"] and each["command"].startswith("rebalance-lab run herd ") for each in failed)
    assert ended.err.count("failed: seed ") == len(failed)
    assert "Traceback" not in ended.err
    assert not list(store.glob(".*.part"))
