"""What people see: consoles, tables, logs."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec
import structlog
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

T = TypeVar("T")

#: Width where there is no terminal to ask: tables in files and pipes stay readable.
PIPE_WIDTH = 120

STYLES = {
    "clean": "green",
    "violated": "magenta",
    "unknown": "yellow",
    "as expected": "green",
    "reproduced": "green",
    "refuted": "green",
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


def answer() -> Console:
    """Stdout."""
    return Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, highlight=False)


def progress() -> Console:
    """Stderr."""
    return Console(stderr=True, highlight=False)


def watched(every: Iterable[T], total: int, what: str = "trials") -> Iterator[T]:
    """All of `every`, with a bar on stderr where that is a terminal."""
    console = progress()
    with Progress(console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(what, total=total)
        for each in every:
            bar.advance(task)
            yield each


def set_up_logs(*, verbose: bool) -> None:
    """Structured logs on stderr: warnings, and with `verbose` everything."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False),
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG if verbose else logging.WARNING),
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),  # the stderr of then, not of now
        cache_logger_on_first_use=False,
    )


def styled(word: str) -> str:
    """An outcome, verdict or status in its colour."""
    style = STYLES.get(word)
    return f"[{style}]{escape(word)}[/]" if style else escape(word)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[str] = ()) -> Table:
    """A table; columns named in `numbers` are set to the right."""
    drawn = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for name in columns:
        drawn.add_column(name, justify="right" if name in numbers else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*row)
    return drawn


def seconds(time_us: int) -> str:
    return f"{time_us / 1e6:.3f} s"


def print_json(value: Any) -> None:
    """One JSON line on stdout, at once."""
    print(msgspec.json.encode(value).decode(), flush=True)


@contextmanager
def pipeable() -> Iterator[None]:
    """For answers that people pipe into `head`: a reader that has read enough is no failure."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still buffered is flushed at exit: it must go somewhere that takes it.
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
        os.close(devnull)
