"""`sweep`: many trials on local processes, over settings and seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import structlog
import typer
from rich.progress import Progress

from rebalance_lab.cli.failures import exit_code, spoken, writable_store
from rebalance_lab.cli.options import (
    DEFAULT_STORE,
    PLANT,
    ControlOption,
    JsonOption,
    Rules,
    RulesOption,
    StoreOption,
    World,
    WorldOption,
    grid,
    without_plant,
)
from rebalance_lab.cli.results import shape
from rebalance_lab.cli.terminal import answer, print_json, progress, seconds, styled, table
from rebalance_lab.history.files import Trial
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import Plan

log = structlog.get_logger()

#: Trials that did not come out as expected, listed with their replay command.
LISTED_LIMIT = 5


def sweep(
    scenario: Annotated[str, typer.Argument(help="Its name; see `scenarios`.", metavar="SCENARIO")],
    *,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting with one value or several.", metavar="K=A,B,C")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", help="Trials of each combination, seeds 1 to N.", min=1)] = 10,
    processes: Annotated[int, typer.Option("--processes", help="Local processes.", min=1)] = 2,
    world: WorldOption = World.simulated,
    rules: RulesOption = Rules.described,
    control: ControlOption = False,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Run a scenario over settings and seeds; one line for each combination at the end."""
    plans = []
    with spoken():
        for combination in grid(settings):
            values, plant = without_plant(combination)
            plans += [
                api.make_plan(
                    scenario, world=world, rules=rules, seed=seed, control=control, settings=values, plant=plant
                )
                for seed in range(1, seeds + 1)
            ]
        writable_store(store)
        results = []
        for result in _watched(plans, store, processes):
            log.info("trial ended", trial=result.trial.id, status=result.status)
            results.append(result)
            if as_json:
                print_json(shape(result))
    if not as_json:
        _show(scenario, [text.partition("=")[0] for text in settings or ()], plans, results)
    raise typer.Exit(exit_code([result.status for result in results]))


def _watched(plans: list[Plan], store: Path, processes: int) -> Iterator[api.TrialResult]:
    """The results of a sweep, with a bar on stderr where that is a terminal."""
    console = progress()
    with Progress(console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("trials", total=len(plans))
        for result in api.sweep(plans, store, processes):
            bar.advance(task)
            yield result


def _values(keys: list[str], of: Plan | Trial) -> tuple[str, ...]:
    """What a plan or a trial has for the settings that were swept."""
    return tuple(str((of.plant or "") if key == PLANT else of.parameters[key]) for key in keys)


def _show(scenario: str, keys: list[str], plans: list[Plan], results: list[api.TrialResult]) -> None:
    groups: dict[tuple[str, ...], list[api.TrialResult]] = {_values(keys, plan): [] for plan in plans}
    for result in results:
        groups[_values(keys, result.trial)].append(result)
    rows = [
        (*values, check, str(len(group)), *_counts(group, check), _longest(group, check))
        for values, group in groups.items()
        for check in group[0].findings
    ]
    numbers = ("trials", "clean", "violated", "unknown", "longest")
    console = answer()
    console.print(table(f"Sweep of {scenario}", (*keys, "check", *numbers), rows, numbers=numbers))
    tally = Counter(result.status for result in results)
    console.print("status   " + ", ".join(f"{count} {styled(status)}" for status, count in sorted(tally.items())))
    odd = sorted((each for each in results if each.status != api.AS_EXPECTED), key=lambda each: each.trial.id)
    for result in odd[:LISTED_LIMIT]:
        console.print(f"{result.status}: {api.replay_command(result.folder)}", soft_wrap=True, markup=False)
    if len(odd) > LISTED_LIMIT:
        console.print(f"… and {len(odd) - LISTED_LIMIT} more that were not as expected")


def _counts(group: list[api.TrialResult], check: str) -> list[str]:
    tally = Counter(str(result.findings[check].outcome) for result in group)
    return [str(tally[outcome]) for outcome in ("clean", "violated", "unknown")]


def _longest(group: list[api.TrialResult], check: str) -> str:
    longest_us = max(result.findings[check].measures.get("longest_us", 0) for result in group)
    return seconds(longest_us) if longest_us else ""
