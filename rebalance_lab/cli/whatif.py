"""`whatif`: what each rule would do to a group of one's own; nothing is started for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from rebalance_lab.cli.failures import AS_EXPECTED, UNKNOWN, Failure, spoken
from rebalance_lab.cli.terminal import print_json
from rebalance_lab.cli.whatif_assign import answer_assign

whatif = typer.Typer(name="whatif", help="What each rule would do to your own group.")


@whatif.callback()
def _several() -> None:
    """Keeps `assign` a word of its own: with one command alone typer would drop it."""


@whatif.command()
def assign(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="JSON lines; else standard input.", metavar="[FILE]...", exists=True, dir_okay=False, readable=True
        ),
    ] = None,
) -> None:
    """Deal the partitions of groups: one JSON line in, one JSON line out.

    In: {"assignor": "range", "members": [{"consumer_id": "c1",
    "topics": {"t": 2}}], "topics": {"t": 5}}

    The assignor is range, roundrobin or ceil. A member's topics are names,
    each with its streams; with "pattern": "white_list" or "black_list",
    one regex. The group's topics are all that exist, each with its
    partitions. "previous" may hold an assignment to compare with.

    Out: {"assignment": [[["t", 0], "c1-0"], …], "balance": {"threads": 1,
    "members": 0}, "movement": {"threads": 2, "members": 2}}

    Balance is the most minus the least partitions. Movement, if there is a
    "previous", counts partitions that changed hands. Where members would
    disagree, "inconsistent" and the "unowned" partitions are told.

    A line that cannot be dealt gives {"error": …}, and the rest goes on.
    Exit 0: every line was dealt. 2: some were not.
    """
    _answer_all(files, answer_assign)


def _answer_all(files: list[Path] | None, answer: Callable[[bytes], dict[str, Any]]) -> None:
    """Print the answer to each line, in order; blank lines are passed over."""
    failed = False
    with spoken():
        for line in _lines(files):
            if not line.strip():
                continue
            found = answer(line)
            failed = failed or "error" in found
            print_json(found)
    raise typer.Exit(UNKNOWN if failed else AS_EXPECTED)


def _lines(files: list[Path] | None) -> Iterator[bytes]:
    if files:
        for each in files:
            with each.open("rb") as lines:
                yield from lines
    elif sys.stdin is None:
        raise Failure("there is no standard input; name a FILE of JSON lines")
    else:
        yield from sys.stdin.buffer
