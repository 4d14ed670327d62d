"""`replay`: a stored trial again."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import typer

from rebalance_lab.cli.failures import Failure, exit_code, spoken, writable_store
from rebalance_lab.cli.options import DEFAULT_STORE, JsonOption, StoreOption, TrialArgument, trial_folder
from rebalance_lab.cli.results import shape, show
from rebalance_lab.cli.terminal import print_json, progress
from rebalance_lab.history.files import Trial, load, read_trial
from rebalance_lab.trials import api


def replay(
    trial: TrialArgument,
    *,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Run a stored trial again.

    A simulated one must give the same history, and the command says whether it did. A live one
    runs with the same parameters, into the store; its schedule may differ.
    """
    folder = trial_folder(trial, store)
    with spoken():
        before = read_trial(folder)
        plan = api.plan_of(folder)
        if before.world != "simulated":
            print("This trial ran on real processes: same parameters, but the schedule may differ.", file=sys.stderr)
            with progress().status(f"{plan.trial_id}: running"):
                result = api.run(plan, writable_store(store))
            _tell(result, before, None, as_json=as_json)
            raise typer.Exit(exit_code([result.status]))
        with TemporaryDirectory(prefix="rebalance-lab-replay-") as scratch:
            result = api.run(plan, Path(scratch))
            same = result.trial.history_sha256 == before.history_sha256
            difference = None if same else _first_difference(folder, result.folder)
    # The scratch copy is gone: what stays, and is spoken of, is the stored trial.
    result = api.TrialResult(folder, result.trial, result.findings)
    _tell(result, before, same, as_json=as_json)
    if not same:
        raise Failure(f"the history differs from the stored one: {difference}. Versions then: {_versions(before)}")
    raise typer.Exit(exit_code([result.status]))


def _tell(result: api.TrialResult, before: Trial, same: bool | None, *, as_json: bool) -> None:
    if as_json:
        print_json(shape(result) | {"replay_of": before.id, "same_history": same})
        return
    show(result)
    if same:
        print("replay   the same history, event for event")


def _first_difference(before: Path, after: Path) -> str:
    """The first event that two histories do not share, in words."""
    old, new = load(before).events, load(after).events
    for number, (left, right) in enumerate(zip(old, new, strict=False)):
        if left != right:
            return f"event {number}, {left.actor}/{left.n} at {left.at_us} us, is {right.actor}/{right.n} now"
    return f"it has {len(old)} events, the replay {len(new)}"


def _versions(trial: Trial) -> str:
    return ", ".join(f"{name} {number}" for name, number in sorted(trial.versions.items())) or "not recorded"
