"""Options and settings in each other's place: the error says what to write instead."""

from __future__ import annotations

import pytest
from cli_tools import CommandLine, commands

SWEEP = "takes one value; sweep takes several values: rebalance-lab sweep zombie --set"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("run zombie --set seed=4", "--set seed=4: use the option --seed 4"),
        ("sweep zombie --set seed=4", "--set seed=4: use the option --seeds"),
        ("run zombie --set world=processes", "--set world=processes: use the option --world processes"),
        ("sweep zombie --set world=a,b", "--set world=a,b: use the option --world"),
        ("agree zombie --set rules=shipped", "--set rules=shipped: use the option --rules shipped"),
        ("run zombie --set control=true", "--set control=true: use the option --control"),
        ("run zombie --set store=x", "--set store=x: use the option --store x"),
        ("run zombie --set members=real", "--set members=real: use the option --members real"),
        ("run isr-election --set brokers=real", "--set brokers=real: use the option --brokers real"),
        ("run zombie --set pause_ms=500,5000", f"--set pause_ms=500,5000: run {SWEEP} pause_ms=500,5000"),
        ("agree zombie --set members=2,3", f"--set members=2,3: agree {SWEEP} members=2,3"),
        ("run zombie --set plant=a,b", f"--set plant=a,b: run {SWEEP} plant=a,b"),
        ("run zombie --plant two-owners", "--plant is a setting of the scenario: use --set plant=VALUE"),
        ("sweep zombie --pause-ms=500", "--pause-ms is a setting of the scenario: use --set pause_ms=VALUE"),
    ],
)
def test_what_to_write_is_said(command: CommandLine, arguments: str, says: str) -> None:
    assert command.refused(*arguments.split()) == says


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("run zombie --set members=0", "members=0: must be 1 or more"),
        ("run zombie --set members=some", "members=some: must be a whole number (members)"),
        ("run zombi --set seed=4", "there is no scenario zombi; did you mean zombie? All: rebalance-lab scenarios"),
        ("run zombie --set", "Option '--set' requires an argument (see rebalance-lab run --help)"),
        ("run zombi --pause-ms 500", "No such option: --pause-ms (see rebalance-lab run --help)"),
    ],
)
def test_other_errors_are_said_as_before(command: CommandLine, arguments: str, says: str) -> None:
    assert command.refused(*arguments.split()) == says


@pytest.mark.parametrize("words", [words for words, _ in commands()])
@pytest.mark.parametrize("option", ["-v", "--verbose", "--version"])
def test_an_option_of_the_lab_stands_before_the_command(command: CommandLine, words: str, option: str) -> None:
    told = f"{option} stands before the command: rebalance-lab {option} {words} ..."
    assert command.refused(*words.split(), option) == told
