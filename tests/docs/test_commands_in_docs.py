"""The commands that the documentation prints can be typed: they exist, and take the options that are given."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.exceptions import TyperException
from typer.main import get_command

from rebalance_lab.cli.main import app_of

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

NAME = "rebalance-lab"


def commands(page: Path) -> Iterator[str]:
    """Each command line of a page's code blocks, fenced or indented, that begins with the lab's name, with its
    comment."""
    text = page.read_text("utf-8").replace("\\\n", " ")
    fenced = re.findall(r"^```[a-z]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    for block in [*fenced, *re.findall(rf"^    ({NAME} .*\n)", text, re.MULTILINE)]:
        for line in block.splitlines():
            if line.removeprefix("$ ").startswith(f"{NAME} "):
                yield line.removeprefix("$ ")


COMMANDS = [
    pytest.param(each, id=f"{page.relative_to(ROOT)}: {each[:70]}") for page in PAGES for each in commands(page)
]


def refusal(words: list[str]) -> str | None:
    """Why the command line refuses these words; None if it takes them, or prints its help."""
    try:
        context = get_command(app_of(words[0])).make_context(NAME, list(words))
        while hasattr(context.command, "resolve_command"):
            name, command, rest = context.command.resolve_command(context, [*context._protected_args, *context.args])
            context = command.make_context(name, rest, parent=context)
    except typer.Exit as asked:
        return None if asked.exit_code == 0 else f"exit code {asked.exit_code}"
    except TyperException as refused:
        return str(refused)
    return None


@pytest.mark.parametrize("line", COMMANDS)
def test_it_can_be_typed(line: str) -> None:
    text, _, comment = line.partition("  #")
    assert NAME not in comment, "the next command has become a part of this one's comment"
    why = refusal(shlex.split(re.split(r"\||>|&&|;", text)[0], comments=True)[1:])
    assert why is None or "does not exist" in why  # a file of the reader's


@pytest.mark.parametrize("words", [["run", "zombie", "--sead", "7"], ["whatif", "place", "--brokers"], ["runn"]])
def test_what_cannot_be_typed_is_noticed(words: list[str]) -> None:
    """So the test above can fail."""
    assert refusal(words) is not None
