"""`replay --until`: stopping at an event, and telling what every task waits for."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from cli_tools import CommandLine

from rebalance_lab.history.files import History, load, seal
from rebalance_lab.trials import api


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plan = api.make_plan("zombie", settings={"members": "2", "partitions": "2"})
    return api.run(plan, tmp_path_factory.mktemp("store")).folder


@pytest.fixture(scope="module")
def history(trial: Path) -> History:
    return load(trial)


def test_the_event_is_shown_with_those_before_it_and_the_tasks(
    command: CommandLine, trial: Path, history: History
) -> None:
    event = history.events[199]
    ended = command("replay", trial, "--until", 200, "--tasks")
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert [line for line in lines if line.startswith(">> ")] == [lines[7]]
    assert f" {event.actor}#{event.n} " in lines[7]
    assert lines[8] == f"# stopped when event 200 of {len(history.events)} was recorded"
    tasks = lines[9:-1]
    assert lines[-1] == f"# {len(tasks)} tasks"
    assert tasks[0].startswith("scenario zombie: ")
    assert any(line.startswith("m1/member m1: waits for first of flag close m1") for line in tasks)
    assert not any(member in ended.out for member in {event.member for event in history.events if event.member})


def test_an_id_is_as_good_as_a_number(command: CommandLine, trial: Path, history: History) -> None:
    event = history.events[199]
    by_number = command("replay", trial, "--until", 200)
    assert command("replay", trial, "--until", f"{event.actor}#{event.n}") == by_number
    assert len(by_number.out.splitlines()) == 9


def test_as_json(command: CommandLine, trial: Path, history: History) -> None:
    shape = command("replay", trial, "--until", 200, "--tasks", "--json").json
    assert set(shape) == {"replay_of", "number", "event", "tasks"}
    assert (shape["replay_of"], shape["number"], shape["event"]["n"]) == (history.trial.id, 200, history.events[199].n)
    assert all(set(task) == {"task", "state"} for task in shape["tasks"])
    assert set(command("replay", trial, "--until", 200, "--json").json) == {"replay_of", "number", "event"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--tasks"], "--tasks needs --until N or --until ACTOR#N, the event at which tasks are shown"),
        (["--until", "0"], "there is no event 0"),
        (["--until", "99999"], "there is no event 99999"),
        (["--until", "soon"], "--until soon: write an event's id as ACTOR#N, such as m1#45"),
        (["--until", "m3#1"], "there is no event m3#1: no actor m3"),
    ],
)
def test_bad_input(command: CommandLine, trial: Path, options: list[str], says: str) -> None:
    assert says in command.refused("replay", trial, *options)


def test_a_live_trial(command: CommandLine, history: History, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in history.events))
    seal(tmp_path, msgspec.structs.replace(history.trial, world="processes"))
    line = command.refused("replay", tmp_path, "--until", 200)
    assert "ran on real processes: it cannot be stopped at an event, as no seed chose its schedule" in line
