"""`agree`: whether live trials of a scenario agree with simulated ones, measure by measure."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from rebalance_lab.analysis.agreement.causes import Live
from rebalance_lab.analysis.agreement.verdicts import (
    Agreement,
    asks_for_slowed,
    beside_slowed,
    compare,
    overall,
)
from rebalance_lab.cli import agree_samples
from rebalance_lab.cli.agree_shown import Comparison, shape, show
from rebalance_lab.cli.failures import AS_EXPECTED, SURPRISE, UNKNOWN, Failure, must_be_writable, writable_store
from rebalance_lab.cli.options import (
    DEFAULT_STORE,
    ControlOption,
    JsonOption,
    Members,
    MembersOption,
    ScenarioArgument,
    SetOption,
    StoreOption,
    TrialRulesOption,
    key_values,
)
from rebalance_lab.cli.terminal import print_json
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import Plan

EXIT_CODES = {
    Agreement.AGREES: AS_EXPECTED,
    Agreement.EXPLAINED: AS_EXPECTED,
    Agreement.DIFFERS: SURPRISE,
    Agreement.UNDECIDED: UNKNOWN,
}

#: The suffixes of pictures.
PICTURES = (".svg", ".html")


def agree(
    scenario: ScenarioArgument,
    *,
    live: Annotated[int, typer.Option("--live", help="Live trials, including those in the store.", min=1)] = 30,
    simulated: Annotated[int, typer.Option("--simulated", help="Simulated trials, with seeds 1 to N.", min=1)] = 1000,
    rules: TrialRulesOption = None,
    members: MembersOption = Members.ours,
    control: ControlOption = False,
    settings: SetOption = None,
    processes: Annotated[int, typer.Option("--processes", help="Local processes for simulated trials.", min=1)] = 2,
    store: StoreOption = DEFAULT_STORE,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write a picture of both distributions.", metavar="FILE.svg|html")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the times, overlaps and costs of live trials with simulated ones.

    Each measure agrees (within a margin), differs but is explained (by causes
    that were declared beforehand), differs, or is undecided. Live trials in the
    store are used first; missing ones are run, one at a time.

    With --members real there are two comparisons: one for groups of the lab's
    members as shipped, one for groups of real consumers. For the latter the
    simulated members subscribe by a white list, as real consumers do.
    """
    if out is not None and out.suffix not in PICTURES:
        raise Failure(f"--out {out}: name a file that ends in .svg or .html")
    values = key_values(settings)
    if plant := values.pop(api.PLANT, ""):
        raise Failure(f"--set plant={plant}: leave it out; a comparison of the worlds with a planted bug shows nothing")
    plans = live_plans(scenario, rules, members, control, values)
    writable_store(store)
    if out is not None:
        must_be_writable(out.parent, f"--out {out}", "another file")
    found = [compared(world, plan, live, simulated, store, processes) for world, plan in plans.items()]
    for comparison in found:
        if as_json:
            print_json(shape(comparison))
        else:
            show(comparison)
    if out is not None:
        _draw(found, out)
    raise typer.Exit(EXIT_CODES[overall(row for comparison in found for row in comparison.rows)])


def live_plans(
    scenario: str, rules: str | None, members: Members, control: bool, values: dict[str, str]
) -> dict[Live, Plan]:
    """The plans of the live samples. Raises Failure, PlanError for what cannot be played in both worlds."""
    if members is Members.mixed:
        raise Failure("--members mixed: causes of differences are declared for groups of one kind; use --members real")
    plan = partial(api.make_plan, scenario, world="processes", control=control, settings=values)
    if members is Members.ours:
        return {Live.PROCESSES: plan(rules=rules)}
    real = plan(rules=rules, implementation=members)
    return {Live.PROCESSES: plan(rules=real.rules), Live.REAL: real}


def compared(world: Live, plan: Plan, live: int, simulated: int, store: Path, processes: int) -> Comparison:
    """`live` trials of a live plan compared with simulated ones. If counts differ, they are also compared with
    simulated trials whose operations are as slow as live ones. Simulated trials are run first, because they show at
    once what real members cannot play. Raises TrialError, and what `live_sample` raises."""
    counterpart = agree_samples.simulated_plan(plan)
    beside = agree_samples.simulated_sample(counterpart, simulated, processes)
    sample = agree_samples.live_sample(world, plan, live, store)
    rows = compare(sample.trials, beside, world, plan.parameters)
    slowed = agree_samples.slowed_plan(counterpart, sample.trials, beside)
    if slowed is None or not asks_for_slowed(rows):
        return Comparison(sample, beside, rows)
    trials = agree_samples.simulated_sample(slowed, simulated, processes)
    return Comparison(
        sample, beside, beside_slowed(rows, compare(sample.trials, trials, world, plan.parameters)), slowed
    )


def _draw(found: list[Comparison], out: Path) -> None:
    # altair is imported only here, because its import is slow.
    from rebalance_lab.report.charts.agreement import write_picture  # noqa: PLC0415

    write_picture([(comparison.title, comparison.rows) for comparison in found], out)
