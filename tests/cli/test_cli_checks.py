"""`checks`: what each check says of a trial."""

from __future__ import annotations

import shlex

import pytest
from cli_tools import CommandLine

from rebalance_lab.checks import CHECKS, Outcome, checks_of
from rebalance_lab.trials.scenario import scenario, scenario_names

#: Registers the checks of all subjects.
SUBJECTS = sorted({scenario(name).subject.name for name in scenario_names()})


def test_every_check_is_explained_within_80_columns(command: CommandLine) -> None:
    ended = command("checks")
    assert (ended.code, ended.err) == (0, "")
    told = " ".join(ended.out.split())
    for name, check in CHECKS.items():
        assert f"{name}: " in told
        assert " ".join(check.meaning.split()) in told
        assert check.statement is None or check.statement in told
    assert max(len(line) for line in ended.out.splitlines()) <= 80


def test_one_is_explained_with_the_commands_that_show_it(command: CommandLine, tmp_path) -> None:
    out = command("checks", "zombie_overlap").out
    assert out.startswith("zombie_overlap: compares belief, effect and registry; decides Z10\n")
    assert "disagreement: " not in out
    (shows, *_) = [line.strip() for line in out.splitlines() if line.startswith("    rebalance-lab run ")]
    shape = command(*shlex.split(shows)[1:], "--store", tmp_path, "--json").json
    assert shape["checks"]["zombie_overlap"]["outcome"] == Outcome.VIOLATED


def test_as_json(command: CommandLine) -> None:
    shapes = command("checks", "--json").json
    assert list(shapes) == list(CHECKS)
    assert shapes["stray_fetcher"]["compares"] == ["belief", "effect"]
    assert shapes["stray_fetcher"]["meaning"] == CHECKS["stray_fetcher"].meaning
    assert "Z10" in shapes["zombie_overlap"]["claims"]
    assert list(command("checks", "stray_fetcher", "--json").json) == ["stray_fetcher"]


@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_names_that_run_prints_are_known(command: CommandLine, subject: str) -> None:
    assert checks_of(subject).keys() <= command("checks", "--json").json.keys()


def test_an_unknown_check(command: CommandLine) -> None:
    assert command.refused("checks", "luck") == "there is no check luck; all: rebalance-lab checks"
    near = command.refused("checks", "stray_fetchers")
    assert near == "there is no check stray_fetchers; did you mean stray_fetcher? All: rebalance-lab checks"
