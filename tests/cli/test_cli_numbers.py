"""Numbers are ASCII digits, wherever a command takes one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cli_tools import CommandLine, commands

from rebalance_lab.kernel.numerals import number, whole_number

#: What Python's `int` or `float`, or pydantic, would take.
STRANGE = (
    "1_0",
    "３",
    "٣",
    " 3",
    "3 ",
    "3\n",
    "",
    "+",
    "0x3",
    "nan",
    "inf",
    "-inf",
    "infinity",
    "1e",
    "--3",
)


def number_options() -> Iterator[tuple[str, str, bool]]:
    """Every option of every command that is a number: the command's words, the option, whether it is whole."""
    for words, command in commands():
        for parameter in command.params:
            if parameter.type_descriptor.annotation in (int, float):
                yield words, max(parameter.opts, key=len), parameter.type_descriptor.annotation is int


OPTIONS = list(number_options())


def test_the_options_are_found() -> None:
    assert len(OPTIONS) > 30
    assert {("run", "--seed", True), ("history show", "--from-ms", False)} <= set(OPTIONS)


@pytest.mark.parametrize(("words", "option", "whole"), OPTIONS)
@pytest.mark.parametrize("text", ["1_0", "３", " 3", "inf"])
def test_an_option_takes_no_other_number(command: CommandLine, words: str, option: str, whole: bool, text: str) -> None:
    what = "a whole number" if whole else "a number"
    told = f"Invalid value for '{option}': must be {what} (see rebalance-lab {words} --help)"
    assert command.refused(*words.split(), f"{option}={text}") == told


def test_every_option_has_a_largest_number() -> None:
    unbounded = [
        (words, max(parameter.opts, key=len))
        for words, command in commands()
        for parameter in command.params
        if parameter.type_descriptor.annotation in (int, float) and parameter.max is None
    ]
    assert unbounded == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "zombie", "--set", "members=1_0"],
        ["run", "zombie", "--set", "members=３"],
        ["run", "zombie", "--set", "members= 3"],
        ["run", "zombie", "--set", "members=" + "9" * 5000],
        ["history", "show", "t", "--around", "m1#３"],
        ["history", "show", "t", "--around", "m1#3:１"],
        ["history", "show", "t", "--around", "m1#" + "9" * 5000],
        ["history", "show", "t", "--partition", "t1/０"],
        ["join", "--zookeeper", "h:1", "--group", "g", "--topic", "t:３"],
        ["join", "--zookeeper", "h:２１８１", "--group", "g", "--topic", "t"],
        ["consume", "--bootstrap", "h:２１８１", "--topic", "t"],
        ["consume", "--bootstrap", "h:1", "--topic", "t", "--from", "３"],
        ["broker", "--zookeeper", "h:1", "--data", "d", "--set", "num.partitions=1_0"],
    ],
)
def test_nor_does_a_text_with_a_number_in_it(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command.refused(*arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", STRANGE)
def test_what_is_no_number(text: str) -> None:
    for read in (whole_number, number):
        with pytest.raises(ValueError, match="is not a"):
            read(text)


def test_numbers() -> None:
    assert [whole_number(each) for each in ("0", "007", "-3", "+3")] == [0, 7, -3, 3]
    assert [number(each) for each in ("0", "-3", "2.5", ".5", "5.", "1e3", "1.5E-1")] == [0, -3, 2.5, 0.5, 5, 1e3, 0.15]
    with pytest.raises(ValueError, match=r"3\.0 is not a whole number"):
        whole_number("3.0")
    with pytest.raises(ValueError, match="is not a whole number"):
        whole_number("9" * 5000)
