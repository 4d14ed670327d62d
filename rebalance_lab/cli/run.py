"""`run`: one trial."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

from rebalance_lab.cli.failures import exit_code
from rebalance_lab.cli.options import (
    DEFAULT_STORE,
    Brokers,
    BrokersOption,
    ControlOption,
    JsonOption,
    Members,
    MembersOption,
    ScenarioArgument,
    SetOption,
    StoreOption,
    TrialRulesOption,
    World,
    WorldOption,
    key_values,
)
from rebalance_lab.cli.results import shape, show
from rebalance_lab.cli.terminal import print_json, progress
from rebalance_lab.cli.trial_runs import implementation_of, writable_store
from rebalance_lab.history.files import MAX_SEED
from rebalance_lab.trials import api
from rebalance_lab.trials.scenario import PlanOptions

_log = logging.getLogger(__name__)


def run(
    scenario: ScenarioArgument,
    *,
    world: WorldOption = World.simulated,
    rules: TrialRulesOption = None,
    members: MembersOption = Members.ours,
    brokers: BrokersOption = Brokers.ours,
    seed: Annotated[
        int,
        typer.Option("--seed", help="Determines all that is random in a simulated trial.", min=0, max=MAX_SEED),
    ] = 1,
    control: ControlOption = False,
    settings: SetOption = None,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Run one trial of a scenario and judge it."""
    values = {name: [value] for name, value in key_values(settings).items()}
    implementation = implementation_of(scenario, members, brokers)
    options = PlanOptions(world=world, rules=rules, implementation=implementation, control=control)
    (plan,) = api.plans(scenario, values, [seed], **options)
    writable_store(store)
    _log.info("trial %s begins", plan.trial_id)
    with progress().status(f"{plan.trial_id}: running"):
        result = api.run(plan, store)
        in_vain = api.planted_in_vain(plan, result.trial)
    _log.info("trial ended: %s is %s", result.trial.id, result.status)
    if as_json:
        print_json(shape(result))
    else:
        show(result)
    if in_vain:
        why = f"planted bug {plan.plant} changed nothing in this trial: without it the history is the same"
        print(f"rebalance-lab: {why}", file=sys.stderr)
    raise typer.Exit(exit_code([result.status]))
