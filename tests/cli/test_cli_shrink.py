"""`shrink`: what it prints, and what it refuses."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from cli_tools import CommandLine

from rebalance_lab.history.files import load
from rebalance_lab.trials import api


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plan = api.make_plan("zombie", settings={"members": "4", "partitions": "5"}, plant="never-claim-last")
    return api.run(plan, tmp_path_factory.mktemp("store")).folder


def test_a_smaller_trial_is_stored_and_its_command_printed(command: CommandLine, trial: Path, tmp_path: Path) -> None:
    ended = command("shrink", trial, "--check", "unowned_window", "--store", tmp_path)
    assert (ended.code, ended.err) == (0, "")
    said = {line.split()[0]: line.partition(" ")[2].strip() for line in ended.out.splitlines()[1:]}
    assert said["finding"] == "unowned_window violated, a surprise"
    assert said["changes"].startswith("the control, partitions 5 -> ")
    small = load(Path(said["trial"]))
    assert said["events"].startswith(f"{len(load(trial).events)} before, {len(small.events)} now, after ")
    run = command(*shlex.split(said["command"])[1:], "--json")
    assert (run.code, run.json["status"], run.json["trial"]) == (1, "surprise", small.trial.id)
    assert command(*shlex.split(said["again"])[1:]).code == 1


def test_as_json(command: CommandLine, trial: Path, tmp_path: Path) -> None:
    shape = command("shrink", trial.name, "--check", "unowned_window", "--store", trial.parent, "--json").json
    assert (shape["shrunk_from"], shape["check"]) == (trial.name, "unowned_window")
    assert (shape["outcome"], shape["surprise"]) == ("violated", True)
    assert shape["events"] == len(load(trial.parent / shape["trial"]).events) < shape["events_before"]
    assert 1 < shape["runs"] <= 200
    shape = command("shrink", trial, "--check", "unowned_window", "--runs", 1, "--store", tmp_path, "--json").json
    assert (shape["trial"], shape["changes"], shape["runs"]) == (trial.name, [], 1)


def test_nothing_smaller_is_said_so(command: CommandLine, trial: Path, tmp_path: Path) -> None:
    out = command("shrink", trial, "--check", "unowned_window", "--runs", 1, "--store", tmp_path).out
    assert "changes  none: no smaller trial shows the finding" in out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--check", "luck"], "there is no check luck; all: rebalance-lab checks"),
        (["--check", "registry_overlap"], "registry_overlap is clean, and no surprise in "),
        (["--runs", "0"], "must be 1 or more"),
    ],
)
def test_bad_input(command: CommandLine, trial: Path, tmp_path: Path, options: list[str], says: str) -> None:
    assert says in command.refused("shrink", trial, *options, "--store", tmp_path)


def test_no_trial(command: CommandLine, tmp_path: Path) -> None:
    assert "there is no trial yesterday" in command.refused("shrink", "yesterday", "--store", tmp_path)
