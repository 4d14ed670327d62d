"""docs/broker.md: what it gives people to type can be run, and what it says of it is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_defects_page import planned, ran

from rebalance_lab.checks import Outcome
from rebalance_lab.cli.broker import SETTINGS

PAGE = (Path(__file__).parents[2] / "docs" / "broker.md").read_text()

#: The block of scenarios: (command, what the comment says).
BLOCK = re.findall(r"^(rebalance-lab run .*?)\s+# (.+)$", PAGE, re.MULTILINE)

#: The commands in the text, each of which is there because an acknowledged record is lost.
LOSSES = re.findall(r"`(rebalance-lab run committed-data [^`]+)`", PAGE)


def test_each_command_can_be_run() -> None:
    assert len(BLOCK) > 20
    for command, _ in BLOCK:
        planned(command)


@pytest.mark.parametrize(
    "command", [command for command, said in BLOCK if said == "a committed record is lost"] + LOSSES
)
def test_the_trial_loses_what_was_committed(command: str) -> None:
    """Their seeds were searched for; another schedule needs other seeds."""
    _, found = ran(command)
    assert {name: found[name].outcome for name in ("lost_write", "leader_completeness")} == {
        "lost_write": Outcome.VIOLATED,
        "leader_completeness": Outcome.VIOLATED,
    }


def test_all_losses_are_tried() -> None:
    assert len(LOSSES) == 3
    assert [said for _, said in BLOCK].count("a committed record is lost") == 1


def test_all_settings_are_listed_with_their_defaults() -> None:
    block = PAGE.partition("## Settings of a broker\n")[2].split("```")[1].removeprefix("text\n")
    told = dict(line.partition("=")[::2] for line in block.splitlines())
    assert list(told) == list(SETTINGS)
    for name, setting in SETTINGS.items():
        assert setting.default == (setting.read(told[name]) if told[name] else None), name
