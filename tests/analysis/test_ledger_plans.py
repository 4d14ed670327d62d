"""scripts/ledger.py runs trials enough for the verdict of every reading that is run."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache

import pytest
from ledger_conditions import holds

from rebalance_lab.analysis.ledger import (
    Expected,
    Minimum,
    Quantifier,
    Run,
    minimum_of,
    quantifier_of,
    read_ledger,
    run_of,
)
from rebalance_lab.trials.plan import REAL, value_text
from scripts.ledger import ALL, BROKERS, LIVE, SIMULATED, plans

LEDGER = read_ledger()
RUNNING = {
    (name, reading.name): (claim, reading)
    for name, claim, reading in LEDGER.readings()
    if run_of(claim, reading) is not None
}


@dataclass(frozen=True, slots=True)
class Planned:
    """What a verdict looks at of a trial that is planned."""

    seed: int
    control: bool
    parameters: dict[str, str]


def planned(world: str, rules: set[str]) -> dict[tuple[str, str], list[Planned]]:
    """By scenario and rules."""
    found: dict[tuple[str, str], list[Planned]] = defaultdict(list)
    for plan in plans(world, rules):
        parameters = {name: value_text(value) for name, value in plan.parameters.items()}
        follows = REAL if plan.implementation == REAL else plan.rules
        found[plan.scenario, follows].append(Planned(plan.seed, plan.control, parameters))
    return found


@cache
def all_planned() -> dict[str, dict[tuple[str, str], list[Planned]]]:
    """By world. Thousands of plans take seconds, which no collection of other tests should pay."""
    ours = {*ALL, *BROKERS} - {REAL}
    return {"live": planned(LIVE, {*ours, REAL}), "simulated": planned(SIMULATED, ours)}


def seen(world: str, found: list[Planned]) -> int:
    """How many of these a verdict counts if all come out alike: simulated trials of one seed count once."""
    trials = [each for each in found if not each.control]
    return len(trials) if world == "live" else len({each.seed for each in trials})


def needed(run: Run, quantifier: Quantifier, expected: Expected) -> Minimum:
    """Trials that the expected verdict needs. One counter-example refutes what always holds."""
    minimum = minimum_of(quantifier, run)
    if expected is not Expected.REFUTED:
        return minimum
    if quantifier is Quantifier.EXISTS:
        return run.to_refute
    return Minimum(live=min(minimum.live, 1), simulated=min(minimum.simulated, 1))


@pytest.mark.parametrize("which", list(RUNNING), ids=str)
def test_a_reading_has_the_trials_and_controls_that_it_needs(which: tuple[str, str]) -> None:
    claim, reading = RUNNING[which]
    run = run_of(claim, reading)
    assert run is not None and reading.rules is not None
    minimum = needed(run, quantifier_of(claim, reading), reading.expected)
    conditions = (*run.conditions, *reading.conditions)
    for world, wanted in all_planned().items():
        of_these = wanted[run.scenario, reading.rules]
        found = [each for each in of_these if all(holds(each.parameters, one) for one in conditions)]
        least = getattr(minimum, world)
        assert seen(world, found) >= least, f"{seen(world, found)} of {least} {world} trials"
        assert any(each.control for each in found) or not least, f"no {world} control"
