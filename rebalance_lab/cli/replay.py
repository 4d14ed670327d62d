"""`replay`: run a stored trial again, completely or up to one of its events."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rebalance_lab.checks import judge
from rebalance_lab.cli.events import Lines, event_id_of, id_text, index_of, printable
from rebalance_lab.cli.failures import Failure, exit_code
from rebalance_lab.cli.history import head, put
from rebalance_lab.cli.options import DEFAULT_STORE, JsonOption, StoreOption, TrialArgument, trial_folder
from rebalance_lab.cli.results import shape, show
from rebalance_lab.cli.terminal import note, print_json, progress
from rebalance_lab.cli.trial_runs import writable_store
from rebalance_lab.history.compare import first_difference
from rebalance_lab.history.files import History, Trial, load
from rebalance_lab.history.views import gave_up
from rebalance_lab.kernel.numerals import whole_number
from rebalance_lab.trials import api
from rebalance_lab.trials.halting import Halt, halt_at
from rebalance_lab.trials.stages.simulated.stage import simulate

#: Events shown before the one at which a replay stopped.
LEADING = 5


def replay(
    trial: TrialArgument,
    *,
    until: Annotated[
        str | None,
        typer.Option(help="Stop at the N-th event of the history, or at the event with this id.", metavar="N|ID"),
    ] = None,
    tasks: Annotated[bool, typer.Option("--tasks", help="With --until: show what every task waits for.")] = False,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Run a stored trial again.

    A simulated trial must give the same history; the command reports whether
    it did. A live trial is run with the same parameters and stored as a new
    trial; its schedule may differ.

    With --until, a simulated trial is stopped when that event is recorded. N
    counts from 1, in the order of `history show`. With --tasks, every task is
    shown with what it waits for at that moment.
    """
    if tasks and until is None:
        raise Failure("--tasks needs --until N or --until ACTOR#N, the event at which tasks are shown")
    folder = trial_folder(trial, store)
    if until is not None:
        _stop(folder, until, tasks=tasks, as_json=as_json)
        return
    stored = load(folder)  # checked as a whole: a changed history is refused
    before = stored.trial
    plan = api.plan_of(folder)
    if before.world != "simulated":
        print(
            "This trial ran on real processes. The parameters are the same, but the schedule may differ.",
            file=sys.stderr,
        )
        with progress().status(f"{plan.trial_id}: running"):
            result = api.run(plan, writable_store(store))
        _tell(result, before, None, as_json=as_json)
        raise typer.Exit(exit_code([result.status]))
    history, _ = simulate(plan)
    result = api.TrialResult(folder, history.trial, judge(history))
    same = history.trial.history_sha256 == before.history_sha256
    _tell(result, before, same, as_json=as_json)
    if not same:
        difference = _first_difference(stored, history)
        raise Failure(f"the history differs from the stored one: {difference}. Versions then: {_versions(before)}")
    why = gave_up(history)
    if why is not None:
        raise Failure(f"the runner gave up, as before: {why}")
    raise typer.Exit(exit_code([result.status]))


def _tell(result: api.TrialResult, before: Trial, same: bool | None, *, as_json: bool) -> None:
    if as_json:
        print_json(shape(result) | {"replay_of": before.id, "same_history": same})
        return
    show(result)
    if same:
        print("replay   the same history, event for event")


def _first_difference(before: History, after: History) -> str:
    """The first event in which two histories differ, in words."""
    old, new = before.events, after.events
    found = first_difference(old, new)
    assert found is not None, "their hashes differ"
    left, right = found.left, found.right
    if left is None or right is None:
        return f"it has {len(old)} events, the replay {len(new)}"
    now = f"{id_text(right.id)} at {right.at_us} us"
    return f"event {found.index + 1}, {id_text(left.id)} at {left.at_us} us, is {now} now"


def _versions(trial: Trial) -> str:
    return ", ".join(f"{name} {number}" for name, number in sorted(trial.versions.items())) or "not recorded"


# -- up to an event -------------------------------------------------------------------------


def _stop(folder: Path, until: str, *, tasks: bool, as_json: bool) -> None:
    history = load(folder)
    try:
        number = whole_number(until)
    except ValueError:
        number = index_of(history.events, event_id_of(until, "--until")) + 1
    with progress().status(f"{history.trial.id}: running up to event {number}"):
        halt = halt_at(api.plan_of(folder), history, number)
    if as_json:
        print_json(_halt_shape(halt, history, tasks=tasks))
    else:
        _tell_halt(halt, history, tasks=tasks)


def _halt_shape(halt: Halt, history: History, *, tasks: bool) -> dict[str, object]:
    found: dict[str, object] = {"replay_of": history.trial.id, "number": halt.number, "event": halt.event}
    return found | {"tasks": [{"task": name, "state": state} for name, state in halt.tasks]} if tasks else found


def _tell_halt(halt: Halt, history: History, *, tasks: bool) -> None:
    head(history.trial)
    shown = history.events[max(halt.number - 1 - LEADING, 0) : halt.number]
    lines = Lines.of(history.events, shown)
    put((lines.line(event, halt.event.id), event) for event in shown)
    note(f"stopped when event {halt.number} of {len(history.events)} was recorded")
    if tasks:
        for name, state in halt.tasks:
            print(printable(lines.shorten(f"{name}: {state}")))
        note(f"{len(halt.tasks)} tasks")
