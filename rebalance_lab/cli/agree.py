"""`agree`: whether live trials of a scenario agree with simulated ones, measure by measure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rebalance_lab.cli.failures import Failure, must_be_file
from rebalance_lab.cli.options import (
    DEFAULT_STORE,
    MOST_PROCESSES,
    MOST_TRIALS,
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
from rebalance_lab.cli.trial_runs import writable_store
from rebalance_lab.trials import api

#: The suffixes of pictures.
PICTURES = (".svg", ".html")


def agree(
    scenario: ScenarioArgument,
    *,
    live: Annotated[
        int, typer.Option("--live", help="Live trials, including those in the store.", min=1, max=MOST_TRIALS)
    ] = 30,
    simulated: Annotated[
        int, typer.Option("--simulated", help="Simulated trials, with seeds 1 to N.", min=1, max=MOST_TRIALS)
    ] = 1000,
    rules: TrialRulesOption = None,
    members: MembersOption = Members.ours,
    control: ControlOption = False,
    settings: SetOption = None,
    processes: Annotated[
        int, typer.Option("--processes", help="Local processes for simulated trials.", min=1, max=MOST_PROCESSES)
    ] = 2,
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
    # numpy is imported only here, because its import is slow.
    from rebalance_lab.cli.agree_compared import compared, draw, exit_code, live_plans  # noqa: PLC0415
    from rebalance_lab.cli.agree_shown import shape, show  # noqa: PLC0415

    if out is not None and out.suffix not in PICTURES:
        raise Failure(f"--out {out}: name a file that ends in .svg or .html")
    values = key_values(settings)
    if plant := values.pop(api.PLANT, ""):
        raise Failure(f"--set plant={plant}: leave it out; a comparison of the worlds with a planted bug shows nothing")
    plans = live_plans(scenario, rules, members, control, values)
    writable_store(store)
    if out is not None:
        must_be_file(out, "--out")
    found = [compared(world, plan, live, simulated, store, processes) for world, plan in plans.items()]
    for comparison in found:
        if as_json:
            print_json(shape(comparison))
        else:
            show(comparison)
    if out is not None:
        draw(found, out)
    raise typer.Exit(exit_code(found))
