"""The app: all commands, and how they end."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from importlib.metadata import version
from typing import Annotated

import structlog
import typer
from typer.exceptions import TyperException

from rebalance_lab.cli.agree import agree
from rebalance_lab.cli.at_once import NAME, command_of, is_foreground
from rebalance_lab.cli.broker import broker
from rebalance_lab.cli.checks import checks
from rebalance_lab.cli.claims import claims
from rebalance_lab.cli.cluster import cluster
from rebalance_lab.cli.command import Command
from rebalance_lab.cli.consume import consume
from rebalance_lab.cli.demo import demo
from rebalance_lab.cli.exit_codes import AS_EXPECTED, UNKNOWN
from rebalance_lab.cli.explore import explore_schedules
from rebalance_lab.cli.failures import CutShort, Failure, end_by_force, spoken
from rebalance_lab.cli.heartbeat import signs_of_life
from rebalance_lab.cli.history import history
from rebalance_lab.cli.join import join
from rebalance_lab.cli.limits import named
from rebalance_lab.cli.produce import produce_lines
from rebalance_lab.cli.replay import replay
from rebalance_lab.cli.report import report
from rebalance_lab.cli.run import run
from rebalance_lab.cli.scenarios import scenarios
from rebalance_lab.cli.shrink import shrink
from rebalance_lab.cli.streams import STDOUT, only_reads
from rebalance_lab.cli.sweep import sweep
from rebalance_lab.cli.tables import tables
from rebalance_lab.cli.terminal import set_up_logs
from rebalance_lab.cli.topics import topics
from rebalance_lab.cli.whatif import whatif
from rebalance_lab.cli.zookeeper import zookeeper
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

log = structlog.get_logger()

app = typer.Typer(
    name=NAME,
    help="Run Kafka's consumer groups and brokers on a real ZooKeeper or in a simulator, break and judge them.",
    epilog="Exit 0: everything tested came out as expected. 1: something did not. 2: unknown, or wrong usage.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"{NAME} {version(NAME)}")
        raise typer.Exit


@app.callback()
def _common(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log each step on stderr.")] = False,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    set_up_logs(verbose=verbose)


PANELS: dict[str, tuple[Callable[..., None], ...]] = {
    "Experiments": (
        demo,
        scenarios,
        checks,
        run,
        sweep,
        agree,
        replay,
        shrink,
        report,
        claims,
        tables,
        explore_schedules,
    ),
    "Hands on": (zookeeper, cluster, broker, topics, produce_lines, consume, join),
}
#: The names of commands whose functions are called otherwise.
NAMES = {produce_lines: "produce", explore_schedules: "explore"}
#: The names of commands that run for minutes, and write nothing before their end.
MAY_RUN_LONG = frozenset(NAMES.get(command, command.__name__) for command in PANELS["Experiments"])
for panel, commands in PANELS.items():
    for command in commands:
        app.command(NAMES.get(command), rich_help_panel=panel)(command)
app.add_typer(history, rich_help_panel="Experiments")
app.add_typer(whatif, rich_help_panel="Hands on")
for group in (app, history, whatif):
    for registered in group.registered_commands:
        registered.cls = Command


def main(arguments: list[str] | None = None) -> int:
    """Run one command line; returns the exit code. `rebalance_lab.__main__` is the console script."""
    if sys.stdout is None:
        return _fail("standard output is closed; send it to a file, or to /dev/null")
    if only_reads(STDOUT):
        return _fail("standard output is open for reading only; send it to a file, or to /dev/null")
    code: int | None = None
    try:
        with interruptible() as interruption, breaking_off(partial(_end_by_force, interruption), LAST_RESORT_S):
            watched = signs_of_life() if command_of(_given(arguments)) in MAY_RUN_LONG else nullcontext()
            with watched:
                code = _carried_out(arguments, interruption)
    except Interrupted as late:  # between the command's end and that of the handlers
        code = _interrupted(arguments, late.number) if code is None else code
    except (OSError, RuntimeError) as error:  # no thread can be started that attends to signals, or no pipe opened
        return _fail(named(str(error)))
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


def _carried_out(arguments: list[str] | None, interruption: Interruption) -> int:
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
    log.debug("the command failed", exc_info=error)
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
