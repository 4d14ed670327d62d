"""`shrink`: find a smaller trial that shows the same finding."""

from __future__ import annotations

from typing import Annotated

import typer

from rebalance_lab.cli.history import title
from rebalance_lab.cli.options import DEFAULT_STORE, MOST_TRIALS, JsonOption, StoreOption, TrialArgument, trial_folder
from rebalance_lab.cli.terminal import print_json, progress, say, styled, whole
from rebalance_lab.cli.trial_runs import writable_store
from rebalance_lab.history.files import replay_command
from rebalance_lab.report.text import without_ids
from rebalance_lab.trials.shrink import RUNS_LIMIT, Shrunk
from rebalance_lab.trials.shrink import shrink as smallest


def shrink(
    trial: TrialArgument,
    *,
    check: Annotated[
        str | None,
        typer.Option(help="The check whose finding must stay. Default: the first surprise, or the only violation."),
    ] = None,
    runs: Annotated[
        int, typer.Option("--runs", help="The largest number of simulated trials to run.", min=1, max=MOST_TRIALS)
    ] = RUNS_LIMIT,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Find a smaller simulated trial with the same finding.

    Smaller means fewer members, partitions, faults or events. The smallest
    trial found is stored, and the command that runs it is printed.
    """
    with progress().status(f"shrinking {trial}") as status:
        folder = trial_folder(trial, store)

        def on_run(number: int, events: int) -> None:
            status.update(f"shrinking {trial}: run {number} of at most {runs}, {events} events so far")

        found = smallest(folder, writable_store(store), check=check, runs_limit=runs, on_run=on_run)
    if as_json:
        print_json(_shape(found))
    else:
        _show(found)


def _shape(found: Shrunk) -> dict[str, object]:
    return {
        "shrunk_from": found.before.id,
        "trial": found.result.trial.id,
        "check": found.target.check,
        "outcome": found.target.outcome,
        "surprise": found.target.surprise,
        "why": found.result.findings[found.target.check].why,
        "events_before": found.events[0],
        "events": found.events[1],
        "changes": found.changes,
        "command": found.command,
        "runs": found.runs,
    }


def _show(found: Shrunk) -> None:
    surprise = ", a surprise" if found.target.surprise else ""
    say(f"[bold]{title(found.before)}[/]")
    say(found.before.id, lead="from     ", markup=False)
    say(f"{found.target.check} {styled(found.target.outcome)}{surprise}", lead="finding  ")
    say(without_ids(found.result.findings[found.target.check].why), lead="why      ", markup=False)
    say(f"{found.events[0]} before, {found.events[1]} now, after {found.runs} runs", lead="events   ")
    say(", ".join(found.changes) or "none: no smaller trial shows the finding", lead="changes  ", markup=False)
    whole(f"trial    {found.result.folder}")
    whole(f"command  {found.command}")
    whole(f"again    {replay_command(found.result.folder)}")
