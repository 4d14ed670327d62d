"""The help of a command. Names stand whole at 80 columns, so that they can be typed. Typer's own table has up to six
columns, and cuts the names that do not fit in one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from rich.panel import Panel
from rich.text import Text

from rebalance_lab.cli.terminal import PROSE_WIDTH, breaks, console_of

#: Longer names have a line of their own.
_NAMES_WIDTH = 26

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
