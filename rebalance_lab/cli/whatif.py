"""`whatif`: what each rule would do to a group of your own. Nothing is started."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from rebalance_lab.cli.failures import AS_EXPECTED, UNKNOWN, Failure, spoken
from rebalance_lab.cli.terminal import print_json
from rebalance_lab.cli.whatif_assign import answer_assign

whatif = typer.Typer(name="whatif", help="Show what each rule would do to your own group.")


@whatif.callback()
def _several() -> None:
    """Keeps `assign` a subcommand: typer would drop it if it is the only one."""


@whatif.command()
def assign(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Files of JSON lines; default: standard input.",
            metavar="[FILE]...",
            exists=True,
            dir_okay=False,
            readable=True,
        ),
    ] = None,
) -> None:
    """Deal the partitions of groups: one JSON line in, one JSON line out.

    In: {"assignor": "range", "members": [{"consumer_id": "c1",
    "topics": {"t": 2}}], "topics": {"t": 5}}

    The assignor is range, roundrobin or ceil. A member's "topics" maps each
    topic to its streams; with "pattern": "white_list" or "black_list" it
    maps one regex to its streams. The group's "topics" maps every existing
    topic to its number of partitions. "previous" may hold an assignment to
    compare with.

    Out: {"assignment": [[["t", 0], "c1-0"], …], "balance": {"threads": 1,
    "members": 0}, "movement": {"threads": 2, "members": 2}}

    Balance is the largest minus the smallest number of partitions. With a
    "previous", movement counts the partitions that changed their owner. If
    members would disagree, the answer has "inconsistent" and the "unowned"
    partitions.

    A line with an error is answered by {"error": …}; the others are dealt.
    Exit 0: every line was dealt. 2: some were not.
    """
    _answer_all(files, answer_assign)


def _answer_all(files: list[Path] | None, answer: Callable[[bytes], dict[str, Any]]) -> None:
    """Print the answer to each line, in order. Blank lines are skipped."""
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
