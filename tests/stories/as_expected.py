"""Simulated trials in which everything comes out as the scenario expects."""

from __future__ import annotations

from rebalance_lab.checks import Finding, judge
from rebalance_lab.history.files import History
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.scenario import scenario
from rebalance_lab.trials.stages.simulated.stage import simulate


def played(plan: Plan) -> tuple[History, dict[str, Finding]]:
    """The history of a plan and what the checks find. Fails if a check finds what the scenario rules out."""
    history, _ = simulate(plan)
    found, expected = judge(history), scenario(plan.scenario).expects(plan)
    for check, finding in found.items():
        assert finding.outcome is (expected[check] or finding.outcome), f"{check}: {finding.why}"
    return history, found
