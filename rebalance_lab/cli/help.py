"""The help of a command. Names stand whole at 80 columns, so that they can be typed. Typer's own table has up to six
columns, and cuts the names that do not fit in one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from rich.panel import Panel
from rich.text import Text

from rebalance_lab.cli.terminal import PROSE_WIDTH, breaks, console_of

#: Longer names have a line of their own.
_NAMES_WIDTH = 26

#: What stands in for a value. Typer's words for the types of Python, and ours.
_KINDS = {
    " <str>": "",
    " <list[Path]>": "",
    " <list[str]>": "",
    "<int range>": "N",
    "<int>": "N",
    "<float range>": "NUMBER",
    "<float>": "NUMBER",
}

#: The values to choose from, as typer writes them.
_CHOICES = re.compile(r"<([^<>]*\|[^<>]*)>")

#: The range of a number, as typer writes it.
_RANGE = re.compile(r"(-?\d+)(?:\.0)?<=x<=(-?\d+)(?:\.0)?")

#: Between names and help; and of a panel's borders on both sides.
_GAP = 2
_BORDERS = 4


def help_text(command: Any, context: Any) -> str:
    """The help of a command, as wide as the terminal. `command`, `context`: typer's."""
    console = console_of(PROSE_WIDTH)
    width = console.width - _BORDERS
    parameters = [each for each in command.get_params(context) if not each.hidden]
    kinds = {"Arguments": "argument", "Options": "option"}
    with console.capture() as written:
        console.print(Text(f"\n {command.get_usage(context)}\n", style="bold"), soft_wrap=True)
        for line in (command.help or "").strip().splitlines():
            console.print(Text(f" {line}"), soft_wrap=True)
        console.print()
        for title, kind in kinds.items():
            rows = [each.get_help_record(context) for each in parameters if each.param_type_name == kind]
            if rows:
                text = Text("\n").join(_lines(rows, width))
                console.print(Panel(text, title=title, title_align="left", border_style="dim"))
    return "\n".join(line.rstrip() for line in written.get().rstrip("\n").split("\n"))


def _lines(rows: Sequence[tuple[str, str]], width: int) -> Iterable[Text]:
    """The names of each row, and beside them its help, or below them if they are long."""
    rows = [(_typed(names), _RANGE.sub(r"\1 to \2", said)) for names, said in rows]
    short = [len(names) for names, _ in rows if len(names) <= _NAMES_WIDTH]
    indent = max(short, default=_GAP) + _GAP
    for names, said in rows:
        told = " ".join(said.split())
        head = Text(names, style="bold cyan")
        if len(names) > _NAMES_WIDTH:
            yield head
            head = Text()
        edges = [0, *breaks(told, width - indent), len(told)]
        for begin, end in pairwise(edges):
            yield Text(" " * (indent - len(head))).join([head, Text(told[begin:end].rstrip())])
            head = Text()


def _typed(names: str) -> str:
    """The names of an option or an argument, with what is typed for its value instead of the type of Python."""
    for kind, word in _KINDS.items():
        names = names.replace(kind, word)
    return _CHOICES.sub(r"\1", names)
