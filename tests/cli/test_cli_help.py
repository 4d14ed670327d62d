"""Help at 80 columns: what is to be typed stands whole."""

from __future__ import annotations

import re
from typing import Any

import pytest
import typer
from cli_tools import CommandLine, commands

from rebalance_lab.cli.main import app_of
from rebalance_lab.trials.scenario import plants_of, scenario, scenario_names

COLUMNS = 80


@pytest.fixture(autouse=True)
def _columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))


def words_of(shown: str) -> set[str]:
    """The words of an output without the borders of its tables."""
    return set(re.sub(r"[│┃╭╮╰╯─]", " ", shown).split())


def shown(command: CommandLine, *words: str) -> str:
    ended = command(*words)
    assert (ended.code, ended.err) == (0, "")
    assert max(len(line) for line in ended.out.splitlines()) <= COLUMNS
    assert re.search(r"\w…", ended.out) is None, "where rich cuts a word"
    return ended.out


@pytest.mark.parametrize(("words", "known"), list(commands()), ids=lambda each: each if isinstance(each, str) else "")
def test_names_metavars_and_help_stand_whole(command: CommandLine, words: str, known: Any) -> None:
    there = words_of(shown(command, *words.split(), "--help"))
    assert not [each for each in there if each.startswith("<") or "<=" in each], "types of Python, not what is typed"
    for parameter in known.params:
        options = [each for each in (*parameter.opts, *parameter.secondary_opts) if each.startswith("-")]
        metavar = [parameter.metavar] if parameter.metavar else []
        wanted = {*options, *metavar, *(parameter.help or "").split()}
        assert {each.strip("[],") for each in wanted} <= {each.strip("[],") for each in there}


@pytest.mark.parametrize("words", ["", "history", "whatif"])
def test_commands_of_a_group_stand_whole(command: CommandLine, words: str) -> None:
    there = words_of(shown(command, *words.split(), "--help"))
    group: Any = typer.main.get_command(app_of())
    for each in words.split():
        group = group.commands[each]
    assert set(group.commands) <= there
    assert {option for parameter in group.params for option in parameter.opts} <= there


@pytest.mark.parametrize("name", scenario_names())
def test_the_settings_of_a_scenario_stand_whole(command: CommandLine, name: str) -> None:
    there = words_of(shown(command, "scenarios", name))
    chosen = scenario(name)
    for parameter in chosen.parameters:
        assert {parameter.name, *parameter.help.split()} <= {each.rstrip(":") for each in there} | there
    assert {str(bug) for bug in plants_of(chosen.subject)} <= words_of(shown(command, "scenarios", name, "--plants"))
