"""`sweep`: many trials over settings and seeds, on local processes or on Spark."""

from __future__ import annotations

import logging
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from rebalance_lab.analysis.uri import Place, StoreUri
from rebalance_lab.api import stored_at, trials_of
from rebalance_lab.checks import CHECKS
from rebalance_lab.cli.claims import again
from rebalance_lab.cli.failures import Failure, exit_code, spoken
from rebalance_lab.cli.options import (
    DEFAULT_STORE,
    MOST_PROCESSES,
    MOST_TRIALS,
    AnyStoreOption,
    Brokers,
    BrokersOption,
    ConfOption,
    ControlOption,
    JsonOption,
    MasterOption,
    Members,
    MembersOption,
    ScenarioArgument,
    TrialRulesOption,
    World,
    WorldOption,
    choices,
    settings_of_spark,
)
from rebalance_lab.cli.results import shape, surprising
from rebalance_lab.cli.terminal import answer, print_json, progress, say, styled, table, watched, whole
from rebalance_lab.cli.trial_runs import implementation_of, writable_store
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.files import Trial, replay_command
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import Plan, run_command
from rebalance_lab.trials.scenario import PlanOptions

_log = logging.getLogger(__name__)

#: At most so many unknown trials are listed with their replay commands. All surprises are listed.
UNKNOWN_LISTED_LIMIT = 5


def sweep(
    scenario: ScenarioArgument,
    *,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Values of a setting. plant=NAME plants a bug.", metavar="K=A,B,C")
    ] = None,
    seeds: Annotated[
        int, typer.Option("--seeds", help="Trials of each combination, with seeds 1 to N.", min=1, max=MOST_TRIALS)
    ] = 10,
    processes: Annotated[
        int, typer.Option("--processes", help="Local processes that run trials.", min=1, max=MOST_PROCESSES)
    ] = 2,
    master: MasterOption = None,
    world: WorldOption = World.simulated,
    rules: TrialRulesOption = None,
    members: MembersOption = Members.ours,
    brokers: BrokersOption = Brokers.ours,
    control: ControlOption = False,
    store: AnyStoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
    conf: ConfOption = None,
) -> None:
    """Run a scenario with several settings and seeds; count what the checks find.

    With --master the same trials run on Spark, with the same results: simulated
    trials have the same histories. Spark's workers write the trials themselves.
    So they need this lab in the same Python at the same path, and the store at
    the same path, or at a URI that Spark knows.

    If a trial fails, the others go on, and the command that runs it again is
    printed.
    """
    values = choices(settings)
    implementation = implementation_of(scenario, members, brokers)
    options = PlanOptions(world=world, rules=rules, implementation=implementation, control=control)
    plans = api.plans(scenario, values, range(1, seeds + 1), **options)
    spark_settings = settings_of_spark(conf)
    if spark_settings and master is None:
        raise Failure("--conf needs Spark; add --master, as --master local[4]")
    if isinstance(store, StoreUri):
        if master is None:
            raise Failure(f"--store {store}: a URI needs Spark; add --master, as --master local[4]")
        every = stored_at(plans, store, master, spark_settings)
    else:
        every = trials_of(plans, writable_store(store), processes, master, spark_settings)
    ended = _all_told(watched(every, len(plans)), store, as_json=as_json)
    results = [each for each in ended if isinstance(each, api.TrialResult)]
    failed = [each for each in ended if isinstance(each, api.FailedTrial)]
    if not as_json:
        _show(scenario, list(values), plans, results, len(failed))
    console = progress() if as_json else answer()
    _name_odd(list(values), results, console, at_hand=isinstance(store, Path))
    _name_failed(list(values), failed, store, console)
    raise typer.Exit(exit_code([*(result.status for result in results), *(api.TrialStatus.UNKNOWN for _ in failed)]))


def _all_told(every: Iterator[api.Ended], store: Place, *, as_json: bool) -> list[api.Ended]:
    """All that ended, each reported as soon as it has: in the log, and as a line of JSON. Raises Failure for what ends
    the other trials, too."""
    found: list[api.Ended] = []
    try:
        with spoken():
            for ended in every:
                if isinstance(ended, api.TrialResult):
                    _log.info("trial ended: %s is %s", ended.trial.id, ended.status)
                if as_json:
                    print_json(shape(ended) if isinstance(ended, api.TrialResult) else _shape_of_failed(ended, store))
                found.append(ended)
    except Failure as failure:
        raise Failure(f"{failure}; the trials that are complete are kept in {store}") from failure
    return found


def _values(keys: list[str], of: Plan | Trial) -> tuple[str, ...]:
    """The values of the swept settings in a plan or trial."""
    return tuple(str((of.plant or "") if key == api.PLANT else of.parameters[key]) for key in keys)


def _show(scenario: str, keys: list[str], plans: list[Plan], results: list[api.TrialResult], failed: int) -> None:
    groups: dict[tuple[str, ...], list[api.TrialResult]] = {_values(keys, plan): [] for plan in plans}
    for result in results:
        groups[_values(keys, result.trial)].append(result)
    console = answer()
    console.print(f"[bold]Sweep of {scenario}[/]")
    for values, group in groups.items():
        if keys:
            chosen = ", ".join(f"{key}={value}" for key, value in zip(keys, values, strict=True))
            whole(f"\n{chosen}", style="bold")
        _show_group(group, console)
    tally = Counter(result.status for result in results)
    told = [f"{count} {styled(status)}" for status, count in sorted(tally.items())]
    say(", ".join([*told, f"{failed} failed"] if failed else told), lead="status   ")


def _show_group(group: list[api.TrialResult], console: Console) -> None:
    """The trials of one combination: a row for each check that found or measured something, surprises and violations
    first; and in one line the checks that are clean in every trial they apply to."""
    checks = [check for check in CHECKS if any(check in result.findings for result in group)]
    rows = {check: (*_counts(group, check), _longest(group, check)) for check in checks}
    clean = [check for check in checks if rows[check][0] == rows[check][1] and not rows[check][-1]]
    numbers = ("trials", "clean", "violated", "unknown", "longest")
    odd = {check for result in group for check in surprising(result)}
    shown = sorted(
        (check for check in checks if check not in clean),
        key=lambda check: (check not in odd, rows[check][2] == "0", rows[check][3] == "0"),
    )
    if shown:
        console.print(table("", ("check", *numbers), [(check, *rows[check]) for check in shown], numbers=numbers))
    if clean:
        say(", ".join(clean), lead=f"{styled('clean')}    ")
    if not group:
        console.print("no trial was completed")


def _name_odd(keys: list[str], results: list[api.TrialResult], console: Console, *, at_hand: bool) -> None:
    """Name the trials that were not as expected: every surprise, and some of the unknown ones. `at_hand`: their folders
    are on this machine."""
    odd = sorted((each for each in results if each.status != api.TrialStatus.AS_EXPECTED), key=_order)
    surprises = [each for each in odd if each.status == api.TrialStatus.SURPRISE]
    unknown = [each for each in odd if each.status == api.TrialStatus.UNKNOWN]
    for result in [*surprises, *unknown[:UNKNOWN_LISTED_LIMIT]]:
        found = ", ".join(f"{name} {result.findings[name].outcome}" for name in surprising(result))
        which = _which(keys, result.trial) + (f" ({found})" if found else "")
        command = replay_command(result.folder) if at_hand else again(result.trial)
        whole(f"{result.status}: {which}: {command}", console)
    if len(unknown) > UNKNOWN_LISTED_LIMIT:
        console.print(f"… and {len(unknown) - UNKNOWN_LISTED_LIMIT} more that are unknown")
    shrinkable = next((each for each in surprises if each.trial.world == World.simulated), None)
    if shrinkable is not None and at_hand:
        whole(f"to make it smaller: {shrink_command(shrinkable.folder)}", console)


def _name_failed(keys: list[str], failed: list[api.FailedTrial], store: Place, console: Console) -> None:
    """Name every trial that did not complete, with the command that runs it."""
    for each in sorted(failed, key=lambda one: (one.plan.trial_id.replace(f"-s{one.plan.seed}", ""), one.plan.seed)):
        why = each.why.splitlines()[0]
        whole(f"failed: {_which(keys, each.plan)}: {why}: {_command(each.plan, store)}", console)


def _which(keys: list[str], of: Plan | Trial) -> str:
    """A trial of the sweep, by its seed and settings."""
    settings = [f"{key}={value}" for key, value in zip(keys, _values(keys, of), strict=True)]
    return ", ".join([f"seed {of.seed}", *settings])


def _command(plan: Plan, store: Place) -> str:
    """The command that runs a plan, into a store that `run` can reach."""
    return run_command(plan, store if isinstance(store, Path) else None)


def _shape_of_failed(failed: api.FailedTrial, store: Place) -> dict[str, object]:
    """The JSON line of a trial that has no history."""
    plan = failed.plan
    known = {"trial": plan.trial_id, "scenario": plan.scenario, "world": plan.world, "seed": plan.seed}
    return {**known, "status": "failed", "why": failed.why, "command": _command(plan, store)}


def shrink_command(folder: Path) -> str:
    """The command that finds a smaller trial with the same finding."""
    return f"rebalance-lab shrink {shlex.quote(str(folder))} --store {shlex.quote(str(folder.parent))}"


def _order(result: api.TrialResult) -> tuple[str, int]:
    """A sort key of everything that defines a trial, with seeds as numbers."""
    trial = result.trial
    return (trial.id.replace(f"-s{trial.seed}", ""), trial.seed)


def _counts(group: list[api.TrialResult], check: str) -> list[str]:
    """The number of trials to which the check applies, and how many have each outcome."""
    found = [str(result.findings[check].outcome) for result in group if check in result.findings]
    tally = Counter(found)
    return [str(len(found)), *(str(tally[outcome]) for outcome in ("clean", "violated", "unknown"))]


def _longest(group: list[api.TrialResult], check: str) -> str:
    found = [result.findings[check].measures for result in group if check in result.findings]
    longest_us = max(measures.get("longest_us", 0) for measures in found)
    return seconds(longest_us) if longest_us else ""
