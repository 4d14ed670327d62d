"""Running command lines in tests: in this process, or as a user's shell would."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import typer

from rebalance_lab.cli.main import app_of, main

COMMAND = [sys.executable, "-m", "rebalance_lab"]

#: Longer than any command of these tests takes on a busy machine.
LIMIT_S = 110


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that has ended: exit code, stdout, stderr."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Stdout as the one JSON line it must be."""
        (line,) = self.out.splitlines()
        return json.loads(line)


class CommandLine:
    """`command("run", "zombie", ...)` in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Ended:
        self._capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = self._capsys.readouterr()
        return Ended(code, captured.out, captured.err)

    def refused(self, *arguments: object) -> str:
        """The one line on stderr of a command that must exit 2 and answer nothing."""
        ended = self(*arguments)
        assert (ended.code, ended.out) == (2, "")
        (line,) = ended.err.splitlines()
        assert line.startswith("rebalance-lab: ")
        return line.removeprefix("rebalance-lab: ")


class Shell(CommandLine):
    """The same in a process of its own: for commands that start Spark, of which a process can
    have only one (the tests of the analysis keep theirs)."""

    def __init__(self) -> None:
        """Needs nothing of pytest."""

    def __call__(self, *arguments: object, given: str = "") -> Ended:
        """`given`: its standard input."""
        done = subprocess.run(
            [*COMMAND, *(str(argument) for argument in arguments)],
            input=given,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)


@contextmanager
def background(*arguments: object, before: Sequence[str] = ()) -> Iterator[subprocess.Popen[str]]:
    """A command as a process of its own, killed at the end if it still runs. `before`: what starts it."""
    process = subprocess.Popen(
        [*before, *COMMAND, *(str(argument) for argument in arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def commands() -> Iterator[tuple[str, Any]]:
    """Every command, by its words (`run`, `history show`), as typer knows it."""
    found: Any = typer.main.get_command(app_of())
    for name, command in found.commands.items():
        inner = getattr(command, "commands", None)
        if inner is None:
            yield name, command
        else:
            yield from ((f"{name} {each}", inner[each]) for each in inner)


def next_line(process: subprocess.Popen[str]) -> Any:
    """The next JSON line; fails with stderr when the process ended instead."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise AssertionError(f"no more lines; stderr: {process.communicate(timeout=LIMIT_S)[1]}")
    return json.loads(line)


def end(process: subprocess.Popen[str], number: int) -> Ended:
    """Send a signal and wait for the end."""
    process.send_signal(number)
    return finish(process)


def finish(process: subprocess.Popen[str]) -> Ended:
    """Close its standard input, and wait for the end. A process that does not end is killed."""
    try:
        out, err = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"it does not end within {LIMIT_S} s; stdout: {out!r}; stderr: {err!r}") from None
    return Ended(process.returncode, out, err)
