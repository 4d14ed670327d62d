"""Output for people: consoles, tables, logs."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

T = TypeVar("T")

#: The logger above those of all modules.
OURS = "rebalance_lab"

#: Widths of prose and of tables if neither a terminal nor COLUMNS gives one.
PROSE_WIDTH = 80
TABLE_WIDTH = 120

STYLES = {
    "clean": "green",
    "violated": "magenta",
    "unknown": "yellow",
    "as expected": "green",
    "reproduced": "green",
    "refuted": "bright_blue",
    "surprise": "bold red",
    "applies": "green",
    "does not apply": "cyan",
    "by construction": "dim",
    "not run": "dim",
    "agrees": "green",
    "differs, explained": "cyan",
    "differs": "bold red",
    "undecided": "yellow",
}


def console_of(width_else: int) -> Console:
    """Stdout, as wide as the terminal or as COLUMNS says."""
    known = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()
    return Console(width=None if known else width_else, highlight=False)


def answer() -> Console:
    """Stdout, for tables."""
    return console_of(TABLE_WIDTH)


def whole(text: str, console: Console | None = None, *, style: str | None = None) -> None:
    """Print a line that must stay whole, as commands and paths must, on stdout or on `console`."""
    (console or answer()).print(text, style=style, soft_wrap=True, markup=False)


def say(text: str, *, lead: str = "", markup: bool = True) -> None:
    """Print prose on stdout, wrapped at the terminal's width. `lead` stands before the first line; the other lines
    are indented by its length. A word longer than a line stays whole. `markup`: whether rich's markup in `text` is
    applied; in `lead` it always is."""
    console = console_of(PROSE_WIDTH)
    head = Text.from_markup(lead)
    told = Text.from_markup(text) if markup else Text(text)
    for paragraph in told.split("\n", allow_blank=True):
        for line in paragraph.divide(breaks(paragraph.plain, console.width - head.cell_len)):
            line.rstrip()
            console.print(head + line, soft_wrap=True)
            head = Text(" " * head.cell_len)


def note(text: str) -> None:
    """Print a remark between lines of data, wrapped like `say`, each line after `# `."""
    width = console_of(PROSE_WIDTH).width - len("# ")
    edges = [0, *breaks(text, width), len(text)]
    for begin, end in pairwise(edges):
        print(f"# {text[begin:end].rstrip()}")


def breaks(text: str, width: int) -> Iterator[int]:
    """The begins of all lines of a text except the first."""
    begin = 0
    for word in re.finditer(r"\S+", text):
        if word.end() - begin > width and word.start() > begin:
            begin = word.start()
            yield begin


def progress() -> Console:
    """Stderr."""
    return Console(stderr=True, highlight=False)


def watched(every: Iterable[T], total: int, what: str = "trials") -> Iterator[T]:
    """All of `every`, with a progress bar if stderr is a terminal."""
    console = progress()
    with Progress(console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(what, total=total)
        for each in every:
            bar.advance(task)
            yield each


def set_up_logs(*, verbose: bool) -> None:
    """Logs on stderr: the lab's warnings, and with `verbose` all it says, and the warnings of libraries. Without it
    these say nothing: what matters of their errors is in ours."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S"))
    if not verbose:
        handler.addFilter(logging.Filter(OURS))
    logging.basicConfig(handlers=[handler], force=True)
    logging.getLogger(OURS).setLevel(logging.DEBUG if verbose else logging.WARNING)


def styled(word: str) -> str:
    """An outcome, verdict or status in its colour."""
    style = STYLES.get(word)
    return f"[{style}]{escape(word)}[/]" if style else escape(word)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[str] = ()) -> Table:
    """A table. Columns named in `numbers` are aligned to the right."""
    drawn = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for name in columns:
        drawn.add_column(name, justify="right" if name in numbers else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*row)
    return drawn


def print_json(value: Any) -> None:
    """Print one JSON line on stdout, and flush it."""
    print(msgspec.json.encode(value).decode(), flush=True)
