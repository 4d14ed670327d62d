"""docs/truncation.md shows what `explore` prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from rebalance_lab.cli.main import main

PAGE = (Path(__file__).parents[2] / "docs" / "truncation.md").read_text("utf-8")
SHOWN = re.findall(r"```\n\$ rebalance-lab (explore [^\n]*)\n(.*?)```", PAGE, re.DOTALL)


def test_every_rule_set_is_shown() -> None:
    assert len(SHOWN) == 6


@pytest.mark.parametrize(("arguments", "output"), SHOWN, ids=[arguments for arguments, _ in SHOWN])
def test_what_the_page_shows_is_what_the_command_prints(
    arguments: str, output: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert main(shlex.split(arguments)) == 0
    assert capsys.readouterr().out == output
