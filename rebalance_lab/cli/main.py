"""The app: its commands, and how they end."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
from contextlib import nullcontext, suppress
from functools import partial
from importlib import import_module
from importlib.metadata import version
from typing import Annotated

import typer
from typer.exceptions import TyperException

from rebalance_lab.cli.at_once import NAME, command_of, is_foreground, not_loaded
from rebalance_lab.cli.command import Command
from rebalance_lab.cli.exit_codes import AS_EXPECTED, UNKNOWN
from rebalance_lab.cli.failures import CutShort, Failure, end_by_force, spoken
from rebalance_lab.cli.heartbeat import signs_of_life
from rebalance_lab.cli.limits import named
from rebalance_lab.cli.streams import STDOUT, only_reads
from rebalance_lab.cli.terminal import set_up_logs
from rebalance_lab.kernel.interruption import (
    LAST_RESORT_S,
    Interrupted,
    Interruption,
    breaking_off,
    interruptible,
)

#: What typer returns for a KeyboardInterrupt.
BY_TYPER = 130

#: What a signal leaves, if the command does not say more.
UNFINISHED = "what was not finished does not count"

#: The exit code that shells report for a command whose reader has gone: 128 + SIGPIPE.
PIPE_CLOSED = 141

_log = logging.getLogger(__name__)

#: Commands, and groups of some, in the panels of the help. Each is in the module of `rebalance_lab.cli` of that name.
PANELS: dict[str, tuple[str, ...]] = {
    "Experiments": (
        *("demo", "scenarios", "checks", "run", "sweep", "agree", "replay", "shrink", "report", "claims", "tables"),
        *("explore", "history"),
    ),
    "Hands on": ("zookeeper", "cluster", "broker", "topics", "produce", "consume", "join", "whatif"),
}
#: Commands whose functions have another name.
FUNCTIONS = {"produce": "produce_lines", "explore": "explore_schedules"}
#: The names of commands that run for minutes, and write nothing before their end.
MAY_RUN_LONG = frozenset(PANELS["Experiments"]) - {"history"}


def app_of(wanted: str = "") -> typer.Typer:
    """The app. It holds only the command or group that is wanted, if there is one of this name: to load all of them
    takes most of a second."""
    app = typer.Typer(
        name=NAME,
        help="Run Kafka's consumer groups and brokers on a real ZooKeeper or in a simulator, break and judge them.",
        epilog="Exit 0: everything tested came out as expected. 1: something did not. 2: unknown, or wrong usage.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_common)
    known = {name for names in PANELS.values() for name in names}
    for panel, names in PANELS.items():
        for name in names:
            if wanted == name or wanted not in known:
                _add(app, name, panel)
    return app


def _add(app: typer.Typer, name: str, panel: str) -> None:
    found = getattr(import_module(f"rebalance_lab.cli.{name}"), FUNCTIONS.get(name, name))
    if isinstance(found, typer.Typer):
        app.add_typer(found, rich_help_panel=panel)
        for command in found.registered_commands:
            command.cls = Command
    else:
        app.command(name, cls=Command, rich_help_panel=panel)(found)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"{NAME} {version(NAME)}")
        raise typer.Exit


def _common(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log each step on stderr.")] = False,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    set_up_logs(verbose=verbose)


def main(arguments: list[str] | None = None) -> int:
    """Run one command line; returns the exit code. `rebalance_lab.__main__` is the console script."""
    if sys.stdout is None:
        return _fail("standard output is closed; send it to a file, or to /dev/null")
    if only_reads(STDOUT):
        return _fail("standard output is open for reading only; send it to a file, or to /dev/null")
    set_up_logs(verbose=False)
    try:
        app = app_of(command_of(_given(arguments)))
    except Exception as error:
        return not_loaded(error)
    code: int | None = None
    try:
        with interruptible() as interruption, breaking_off(partial(_end_by_force, interruption), LAST_RESORT_S):
            watched = signs_of_life() if command_of(_given(arguments)) in MAY_RUN_LONG else nullcontext()
            with watched:
                code = _carried_out(app, arguments, interruption)
    except Interrupted as late:  # between the command's end and that of the handlers
        code = _interrupted(arguments, late.number) if code is None else code
    except (OSError, RuntimeError) as error:  # no thread can be started that attends to signals, or no pipe opened
        return _fail(named(str(error)))
    except Exception as error:  # Python's own, when memory is short
        return _failed(error)
    return _answered(code)


def _given(arguments: list[str] | None) -> list[str]:
    return sys.argv[1:] if arguments is None else arguments


def _interrupted(arguments: list[str] | None, number: signal.Signals, left: str = UNFINISHED) -> int:
    """Say what ended the command, and what is `left` of it; the exit code."""
    if is_foreground(_given(arguments)):
        return AS_EXPECTED
    print(f"{NAME}: interrupted by {number.name}; {left}", file=sys.stderr)
    return 128 + number


def _end_by_force(interruption: Interruption) -> None:
    number = interruption.number or signal.SIGINT
    end_by_force(number, f"the clean-up did not end within {LAST_RESORT_S:g} s and was cut short")


def _carried_out(app: typer.Typer, arguments: list[str] | None, interruption: Interruption) -> int:
    """The exit code of a command. After a signal, every error is a consequence of it."""
    left = UNFINISHED
    try:
        with spoken():
            code = app(arguments, prog_name=NAME, standalone_mode=False)
    except SystemExit as error:  # typer's end after a closed pipe, or that of a command's own
        if isinstance(error.__context__, BrokenPipeError):
            return PIPE_CLOSED
        raise
    except (Exception, KeyboardInterrupt) as error:
        if interruption.arrived is None:
            return _failed(error)
        left = str(error) if isinstance(error, CutShort) else left
        code = BY_TYPER
    if code == BY_TYPER:
        return _interrupted(arguments, interruption.arrived or signal.SIGINT, left)
    return code if isinstance(code, int) else 0


def _failed(error: BaseException) -> int:
    if isinstance(error, Failure):
        return _fail(named(str(error), error.__cause__))
    if isinstance(error, TyperException):
        return _fail(f"{_plainly(error.format_message()) or 'no command was given'} (see {_path_of(error)} --help)")
    with suppress(Exception):  # memory may be short
        _log.debug("the command failed", exc_info=error)
    try:
        why = str(error).partition("\n")[0]
    except Exception:  # as of Spark's errors, once Spark is gone
        why = "it does not say why"
    return _fail(named(f"unexpected {type(error).__name__}: {why}; {NAME} -v shows where it was raised"))


def _path_of(error: TyperException) -> str:
    """The command that refuses its arguments, as it is typed: `rebalance-lab history show`."""
    context = getattr(error, "ctx", None)
    return NAME if context is None else context.command_path


def _answered(code: int) -> int:
    """The exit code, once the answer has been written to the end."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = PIPE_CLOSED
    except OSError as error:
        code = _fail(f"cannot write to standard output: {error.strerror}")
    else:
        return code
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - Python flushes it once more at its end
    return code


#: Phrases of pydantic, which checks typer's values, and ours.
_PHRASES = (
    (r"Value error, ", ""),
    (r"Input should be a valid integer, .*", "must be a whole number"),
    (r"Input should be a valid number, .*", "must be a number"),
    (r"Input should be greater than or equal to (-?\d+)", r"must be \1 or more"),
    (r"Input should be less than or equal to (-?\d+)", r"must be \1 or less"),
    (r"is not one of (.*)", r"does not exist; there are: \1"),
)


def _plainly(message: str) -> str:
    """A message of typer's in the words of this lab's own."""
    for theirs, ours in _PHRASES:
        message = re.sub(theirs, ours, message)
    return message.rstrip(".")


def _fail(message: str) -> int:
    print(f"{NAME}: {message}", file=sys.stderr)
    return UNKNOWN
