"""Every scenario comes out as it expects, under both rule sets, and so does its control."""

from __future__ import annotations

from pathlib import Path

import pytest

from rebalance_lab.history.checks import judge
from rebalance_lab.history.checks.model import Outcome
from rebalance_lab.trials import api
from rebalance_lab.trials.scenario import make_plan, scenario, scenario_names
from rebalance_lab.trials.simulated import simulate

SEEDS = range(1, 4)


@pytest.mark.parametrize("control", [False, True])
@pytest.mark.parametrize("rules", ["described", "shipped"])
@pytest.mark.parametrize("name", [name for name in scenario_names() if "simulated" in scenario(name).worlds])
def test_a_scenario_comes_out_as_expected(name: str, rules: str, control: bool) -> None:
    for seed in SEEDS:
        history, _ = simulate(make_plan(name, rules=rules, seed=seed, control=control))
        result = api.TrialResult(Path(), history.trial, judge(history))
        assert result.status == api.AS_EXPECTED, (
            seed,
            {n: f for n, f in result.findings.items() if f.outcome != "clean"},
        )


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("uncontrolled", {"rebalance_max_retries": "20"}),
        ("mixed-settings", {"second": "range"}),
        ("unequal-topics", {"assignor": "range"}),
    ],
)
def test_a_cure_leaves_nothing_unowned(name: str, cure: dict[str, str]) -> None:
    for seed in SEEDS:
        ill, _ = simulate(make_plan(name, seed=seed))
        cured, _ = simulate(make_plan(name, seed=seed, settings=cure))
        assert judge(ill)["unowned_window"].outcome is Outcome.VIOLATED
        assert judge(cured)["unowned_window"].outcome is Outcome.CLEAN, seed
